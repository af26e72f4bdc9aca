//! Edges as curves that leave and enter horizontally (web.md §7 "Edges").

use super::Vec2;

/// A cubic curve from an output port to an input port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Curve {
    from: Vec2,
    lead_out: Vec2,
    lead_in: Vec2,
    to: Vec2,
}

impl Curve {
    /// The curve between two ports. Going back needs longer leads, so that it stays readable.
    pub(crate) fn new(from: Vec2, to: Vec2) -> Self {
        let across = to.x - from.x;
        let lead = if across >= 0.0 {
            (across / 2.0).max(24.0)
        } else {
            (48.0 - across / 3.0).min(220.0)
        };
        Self {
            from,
            lead_out: Vec2::new(from.x + lead, from.y),
            lead_in: Vec2::new(to.x - lead, to.y),
            to,
        }
    }

    /// The `d` of an SVG path.
    pub(crate) fn path(&self) -> String {
        let [a, b, c, d] = [self.from, self.lead_out, self.lead_in, self.to]
            .map(|p| format!("{:.1} {:.1}", p.x, p.y));
        format!("M{a}C{b} {c} {d}")
    }

    /// The point at `t`, from 0 at the source to 1 at the target.
    pub(crate) fn at(&self, t: f64) -> Vec2 {
        let u = 1.0 - t;
        let part = |weight: f64, p: Vec2| p.times(weight);
        part(u * u * u, self.from)
            .plus(part(3.0 * u * u * t, self.lead_out))
            .plus(part(3.0 * u * t * t, self.lead_in))
            .plus(part(t * t * t, self.to))
    }

    /// How far a point is from the curve, by its chords: exact enough for a hit.
    pub(crate) fn distance(&self, point: Vec2) -> f64 {
        const CHORDS: u32 = 32;
        let mut least = f64::INFINITY;
        let mut last = self.from;
        for step in 1..=CHORDS {
            let next = self.at(f64::from(step) / f64::from(CHORDS));
            least = least.min(to_segment(point, last, next));
            last = next;
        }
        least
    }
}

fn to_segment(point: Vec2, a: Vec2, b: Vec2) -> f64 {
    let (along, to) = (b.minus(a), point.minus(a));
    let square = along.x * along.x + along.y * along.y;
    let t = if square == 0.0 {
        0.0
    } else {
        ((to.x * along.x + to.y * along.y) / square).clamp(0.0, 1.0)
    };
    point.minus(a.plus(along.times(t))).length()
}

/// The curve nearest to a point, if any is within `reach`.
pub(crate) fn nearest<K>(
    curves: impl IntoIterator<Item = (K, Curve)>,
    point: Vec2,
    reach: f64,
) -> Option<K> {
    curves
        .into_iter()
        .map(|(key, curve)| (key, curve.distance(point)))
        .filter(|(_, distance)| *distance <= reach)
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b135_the_nearest_of_parallel_edges_is_hit() {
        let edges: Vec<_> = [0.0, 8.0, 16.0]
            .into_iter()
            .enumerate()
            .map(|(i, y)| (i, Curve::new(Vec2::new(0.0, y), Vec2::new(200.0, y))))
            .collect();
        let hit = |y| nearest(edges.clone(), Vec2::new(100.0, y), 10.0);
        assert_eq!(hit(-5.0), Some(0));
        assert_eq!(hit(3.0), Some(0));
        assert_eq!(hit(5.0), Some(1));
        assert_eq!(hit(13.0), Some(2));
        assert_eq!(hit(27.0), None);
    }

    #[test]
    fn web7_edges_leave_and_enter_horizontally() {
        for to in [
            Vec2::new(300.0, 90.0),
            Vec2::new(-300.0, -90.0),
            Vec2::new(0.0, 0.0),
        ] {
            let curve = Curve::new(Vec2::default(), to);
            assert!(curve.lead_out.x > 0.0 && curve.lead_out.y == 0.0);
            assert!(curve.lead_in.x < to.x && curve.lead_in.y == to.y);
            assert_eq!(curve.at(0.0), Vec2::default());
            assert_eq!(curve.at(1.0), to);
            assert!(curve.distance(curve.at(0.37)) < 1.0);
        }
    }
}
