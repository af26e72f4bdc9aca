// The same by `require`.
import core = require('@sluicegate/core');

const issues: core.Issue[] = core.check({ schemaVersion: 1, nodes: [], edges: [] });
// @ts-expect-error a text is needed
core.parseText(1);
export = issues;
