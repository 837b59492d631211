import { describe, expect, test } from 'vitest';
import { factsOf } from '../matching/facts.ts';
import { admissionCall, admissionTools, dialect } from '../testing.ts';
import { requestFields } from '../webhooks/review.ts';
import { askConditions, compileConditions } from './conditions.ts';
import { requestVariables } from './run.ts';

const object = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'one', namespace: 'default', labels: { team: 'red' } },
};
const call = admissionCall({ resource: 'configmaps', object });

/** The outcome of conditions for the creation of one ConfigMap. */
function ask(...expressions: string[]) {
  const facts = factsOf(call);
  const asked = { call, facts, resource: facts.resource, kind: facts.kind, object, old: undefined };
  const request = requestFields(asked, dialect);
  const inputs = { object, old: undefined, request, facts, user: call.context.user };
  const variables = requestVariables(inputs, admissionTools(), { costs: 'counted' });
  const named = expressions.map((expression, index) => ({ name: `c${index}`, expression }));
  return askConditions(compileConditions(named), variables);
}

const failing = 'object.metadata.labels.absent == "x"';

describe('ADM-2: match conditions', () => {
  test.each<[string, string[], object]>([
    ['match where there are none', [], { matches: true, failed: 0 }],
    ['match where all are true', ['true', 'object.metadata.name == "one"'], { matches: true }],
    ['do not match where one is false', ['true', 'oldObject != null'], { matches: false }],
    ['do not match where one is false and another fails', [failing, 'false'], { matches: false }],
    ['see no namespace object', ['namespaceObject == null'], { matches: true }],
    ['see the request', ['request.operation == "CREATE"'], { matches: true }],
  ])('%s', async (_, expressions, expected) => {
    expect(await ask(...expressions)).toMatchObject(expected);
  });

  test('count the failures before the one that is false', async () => {
    expect(await ask(failing, 'false')).toEqual({ matches: false, failed: 1 });
  });

  test('list failures, equal ones once', async () => {
    const missing = `expression '${failing}' resulted in error: no such key: absent`;
    expect(await ask('true', failing)).toEqual({ failures: missing, failed: 1 });
    expect(await ask(failing, failing)).toEqual({ failures: missing, failed: 2 });
    const result = await ask(failing, 'object.none == 1');
    expect(result.failures).toMatch(
      /^\[expression '.*no such key: absent, expression '.*: none\]$/,
    );
  });

  test('fail where they do not compile, or are no conditions', async () => {
    expect((await ask('1 +')).failures).toMatch(/^compilation error: /);
    expect((await ask('"text"')).failures).toMatch(/^compilation error: /);
  });
});
