use super::*;

fn at(x: f64, y: f64) -> Vec2 {
    Vec2::new(x, y)
}

fn node(id: &str) -> Target {
    Target::Node(id.into())
}

const EDIT: Held = Held {
    shift: false,
    pan: false,
    editable: true,
};

fn down(x: f64, y: f64, target: Target, held: Held) -> Input {
    Input::Down {
        pointer: 1,
        at: at(x, y),
        target,
        held,
    }
}

fn moved(x: f64, y: f64) -> Input {
    Input::Move {
        pointer: 1,
        at: at(x, y),
        over: None,
    }
}

fn up(x: f64, y: f64) -> Input {
    Input::Up {
        pointer: 1,
        at: at(x, y),
        over: None,
    }
}

/// Plays inputs against one view and gathers what they do; `Look` moves the view on.
fn play(inputs: impl IntoIterator<Item = Input>, mut view: View) -> (Vec<Action>, View) {
    let mut gesture = Gesture::default();
    let mut all = Vec::new();
    for input in inputs {
        for action in gesture.step(input, view) {
            if let Action::Look(next) = action {
                view = next;
            }
            all.push(action);
        }
    }
    (all, view)
}

#[test]
fn web2_dragging_a_node_moves_it_by_canvas_units_and_drops_once() {
    let view = View {
        pan: at(10.0, 10.0),
        zoom: 0.5,
    };
    let (actions, _) = play(
        [
            down(100.0, 100.0, node("a"), EDIT),
            moved(102.0, 100.0),
            moved(120.0, 110.0),
            moved(130.0, 120.0),
            up(130.0, 120.0),
        ],
        view,
    );
    assert_eq!(
        actions,
        [
            Action::Select {
                item: Item::Node("a".into()),
                add: false
            },
            Action::Move(at(40.0, 20.0)),
            Action::Move(at(60.0, 40.0)),
            Action::Drop,
        ]
    );
}

#[test]
fn web2_a_click_on_a_node_moves_nothing() {
    let (actions, _) = play(
        [
            down(5.0, 5.0, node("a"), EDIT),
            moved(6.0, 6.0),
            up(6.0, 6.0),
        ],
        View::default(),
    );
    assert_eq!(
        actions,
        [Action::Select {
            item: Item::Node("a".into()),
            add: false
        }]
    );
}

#[test]
fn web2_the_empty_canvas_pans_by_drag_and_clears_by_click() {
    let (_, view) = play(
        [
            down(0.0, 0.0, Target::Canvas, EDIT),
            moved(30.0, 0.0),
            moved(30.0, 40.0),
            up(30.0, 40.0),
        ],
        View::default(),
    );
    assert_eq!(view.pan, at(30.0, 40.0));
    let (actions, _) = play(
        [down(0.0, 0.0, Target::Canvas, EDIT), up(0.0, 0.0)],
        View::default(),
    );
    assert_eq!(actions, [Action::ClearSelection]);
}

#[test]
fn web2_space_pans_over_nodes_and_ports_too() {
    let held = Held { pan: true, ..EDIT };
    for target in [node("a"), Target::Port(Endpoint::new("a", "data"))] {
        let (actions, view) = play(
            [down(0.0, 0.0, target, held), moved(7.0, 3.0), up(7.0, 3.0)],
            View::default(),
        );
        assert_eq!(view.pan, at(7.0, 3.0));
        assert!(
            actions
                .iter()
                .all(|action| matches!(action, Action::Look(_)))
        );
    }
}

#[test]
fn web2_a_connection_reaches_and_connects_or_lets_go() {
    let from = Endpoint::new("a", "data");
    let to = Endpoint::new("b", "input");
    let over = |x, target: &Endpoint| Input::Move {
        pointer: 1,
        at: at(x, 0.0),
        over: Some(target.clone()),
    };
    let (actions, _) = play(
        [
            down(0.0, 0.0, Target::Port(from.clone()), EDIT),
            moved(50.0, 0.0),
            over(100.0, &to),
            Input::Up {
                pointer: 1,
                at: at(100.0, 0.0),
                over: Some(to.clone()),
            },
        ],
        View::default(),
    );
    assert_eq!(
        actions,
        [
            Action::Reach {
                from: from.clone(),
                to: at(50.0, 0.0),
                over: None
            },
            Action::Reach {
                from: from.clone(),
                to: at(100.0, 0.0),
                over: Some(to.clone())
            },
            Action::Connect {
                from: from.clone(),
                to
            },
        ]
    );
    for end in [
        up(50.0, 0.0),
        Input::Cancel,
        Input::Up {
            pointer: 1,
            at: at(0.0, 0.0),
            over: Some(from.clone()),
        },
    ] {
        let (actions, _) = play(
            [down(0.0, 0.0, Target::Port(from.clone()), EDIT), end],
            View::default(),
        );
        assert_eq!(actions, [Action::LetGo]);
    }
}

#[test]
fn web2_a_read_only_canvas_selects_and_pans_but_never_moves() {
    let held = Held::default();
    let (actions, view) = play(
        [
            down(0.0, 0.0, node("a"), held),
            moved(20.0, 0.0),
            up(20.0, 0.0),
        ],
        View::default(),
    );
    assert_eq!(view.pan, at(20.0, 0.0));
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Move(_) | Action::ClearSelection))
    );
    let (actions, _) = play(
        [
            down(0.0, 0.0, Target::Port(Endpoint::new("a", "data")), held),
            up(0.0, 0.0),
        ],
        View::default(),
    );
    assert_eq!(
        actions,
        [Action::Select {
            item: Item::Node("a".into()),
            add: false
        }]
    );
}

#[test]
fn web2_shift_draws_a_box_and_adds() {
    let held = Held {
        shift: true,
        ..EDIT
    };
    let (actions, _) = play(
        [
            down(50.0, 50.0, Target::Canvas, held),
            moved(10.0, 20.0),
            up(10.0, 20.0),
        ],
        View {
            pan: at(0.0, 0.0),
            zoom: 2.0,
        },
    );
    let area = Rect::between(at(5.0, 10.0), at(25.0, 25.0));
    assert_eq!(
        actions,
        [Action::Box(area), Action::BoxDone { area, add: true }]
    );
}

#[test]
fn web2_escape_takes_a_drag_back() {
    let (actions, _) = play(
        [
            down(0.0, 0.0, node("a"), EDIT),
            moved(20.0, 0.0),
            Input::Cancel,
            moved(40.0, 0.0),
            up(40.0, 0.0),
        ],
        View::default(),
    );
    assert_eq!(actions.last(), Some(&Action::TakeBack));
}

#[test]
fn web2_two_fingers_pinch_and_the_last_one_goes_on_panning() {
    let second = |x, y| Input::Move {
        pointer: 2,
        at: at(x, y),
        over: None,
    };
    let (_, view) = play(
        [
            down(100.0, 100.0, Target::Canvas, EDIT),
            Input::Down {
                pointer: 2,
                at: at(200.0, 100.0),
                target: Target::Canvas,
                held: EDIT,
            },
            second(300.0, 100.0),
        ],
        View::default(),
    );
    assert!((view.zoom - 2.0).abs() < 1e-9);
    // The middle of the fingers stays on the same point of the canvas.
    let under = View::default().to_canvas(at(150.0, 100.0));
    assert!(view.to_screen(under).minus(at(200.0, 100.0)).length() < 1e-9);
}

#[test]
fn b134_wheel_pans_both_axes_and_zooms_only_with_a_key() {
    let turn = |delta, zoom, sideways| {
        Wheel {
            at: at(40.0, 40.0),
            delta,
            zoom,
            sideways,
        }
        .turn(View::default())
    };
    assert_eq!(turn(at(30.0, 0.0), false, false).pan, at(-30.0, 0.0));
    assert_eq!(turn(at(0.0, 30.0), false, false).pan, at(0.0, -30.0));
    assert_eq!(turn(at(0.0, 30.0), false, true).pan, at(-30.0, 0.0));
    let notch = turn(at(0.0, 120.0), true, false).zoom;
    assert!((0.75..0.9).contains(&notch), "{notch}");
    let mut view = View::default();
    for _ in 0..40 {
        view = Wheel {
            at: at(40.0, 40.0),
            delta: at(0.0, -2.0),
            zoom: true,
            sideways: false,
        }
        .turn(view);
    }
    assert!((1.8..2.5).contains(&view.zoom), "{}", view.zoom);
    assert_eq!(wheel_pixels(at(0.0, 3.0), 1, 800.0), at(0.0, 48.0));
    assert_eq!(wheel_pixels(at(0.0, 1.0), 2, 800.0), at(0.0, 800.0));
}
