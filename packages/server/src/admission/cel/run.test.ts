import type { Program } from '@wheelhouse/cel';
import { runInOnePiece } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import type { Attributes, AuthorizationResult } from '../../registry/permit.ts';
import { factsOf, type RequestFacts } from '../matching/rules.ts';
import { admissionCall, admissionTools, dialect } from '../testing.ts';
import { requestFields } from '../webhooks/review.ts';
import {
  Budget,
  compileConditions,
  evaluateConditions,
  OutOfBudget,
  programOf,
  requestVariables,
  runExpression,
} from './run.ts';

const clock = new FakeClock();
const user = { name: 'amy', uid: '', groups: ['dev'], extra: {} };
const facts: RequestFacts = {
  operation: 'CREATE',
  resource: { group: 'apps', version: 'v1', resource: 'deployments' },
  kind: { group: 'apps', version: 'v1', kind: 'Deployment' },
  subresource: 'scale',
  name: 'd',
  namespace: 'n',
};

function compiled(source: string): Program {
  const names = ['object', 'oldObject', 'request', 'authorizer'];
  const program = runInOnePiece(programOf(source, { variables: names, resultTypes: [] }));
  if ('problem' in program) throw new Error(program.problem);
  return program;
}

/** Runs an expression with asynchronous authorization. */
async function run(
  source: string,
  decide: (attributes: Attributes) => Partial<AuthorizationResult>,
) {
  const checks: Attributes[] = [];
  const authorize = async (attributes: Attributes): Promise<AuthorizationResult> => {
    checks.push(attributes);
    return { decision: 'no-opinion', reason: '', ...decide(attributes) };
  };
  const inputs = { object: undefined, old: undefined, request: {}, user, facts };
  const variables = requestVariables(inputs, { authorize });
  const budget = new Budget(10_000_000);
  return { checks, ...(await runExpression(compiled(source), variables, { budget, clock })) };
}

test('ADM-3: authorization may be asynchronous, and each check runs once', async () => {
  const check = (verb: string) =>
    `authorizer.group("").resource("pods").check("${verb}").allowed()`;
  // The cost limit of an expression allows only two checks.
  const source = `${check('get')} && !${check('delete')}`;
  const { checks, ...result } = await run(source, ({ verb }) => ({
    decision: verb === 'delete' ? 'deny' : 'allow',
  }));
  expect(result).toMatchObject({ value: true });
  expect(checks.map(({ verb }) => verb)).toEqual(['get', 'delete']);
  expect(checks[0]).toMatchObject({ user, group: '', resource: 'pods', isResourceRequest: true });
});

test('ADM-3: checks cover the request’s resource, accounts, paths, and selectors', async () => {
  const first = await run(
    '[authorizer.requestResource.check("update").allowed(),' +
      'authorizer.serviceAccount("n", "s").path("/metrics").check("get").allowed()]',
    () => ({}),
  );
  expect(first.checks).toMatchObject([
    { group: 'apps', resource: 'deployments', subresource: 'scale', namespace: 'n', name: 'd' },
    { user: { name: 'system:serviceaccount:n:s' }, path: '/metrics', isResourceRequest: false },
  ]);
  const pods = 'authorizer.group("").resource("pods").fieldSelector("a=b").labelSelector("c")';
  const second = await run(`${pods}.check("list").errored()`, () => ({}));
  expect(second.checks).toMatchObject([
    { fieldSelector: [{ label: 'a', value: 'b' }], labelSelector: [{ key: 'c' }] },
  ]);
});

test('ADM-3: an authorization error is reported', async () => {
  const check = 'authorizer.path("/x").check("get")';
  const error = await run(`${check}.error() + "/" + ${check}.reason()`, () => ({
    reason: 'because',
    error: 'broken',
  }));
  expect(error).toMatchObject({ value: 'broken/because' });
});

test('TRUST-2: a long evaluation pauses', async () => {
  const list = `[${Array.from({ length: 300 }, (_, at) => at).join(', ')}]`;
  const program = compiled(`${list}.all(x, ${list}.all(y, x >= 0))`);
  const inputs = { object: undefined, old: undefined, request: {}, user, facts };
  const authorize = () => ({ decision: 'allow' as const, reason: '' });
  // Each reading of the clock ends the slice.
  let nowMs = 0;
  const hasty = { monotonic: () => (nowMs += 10) };
  let turns = 0;
  const counter = setInterval(() => (turns += 1), 0);
  const { cost, value } = await runExpression(program, requestVariables(inputs, { authorize }), {
    budget: new Budget(10_000_000),
    clock: hasty,
  });
  clearInterval(counter);
  expect(value).toBe(true);
  expect(cost).toBeGreaterThan(200_000);
  expect(nowMs / 10).toBeGreaterThan(100);
  expect(turns).toBeGreaterThan(0);
});

test('ADM-3: a check has a cost', async () => {
  const check = 'authorizer.path("/x").check("get").allowed()';
  const { cost } = await run(check, () => ({}));
  expect(cost).toBeGreaterThan(350_000);
  const program = compiled(`${check} && true`);
  const inputs = { object: undefined, old: undefined, request: {}, user, facts };
  const authorize = () => ({ decision: 'allow' as const, reason: '' });
  const running = runExpression(program, requestVariables(inputs, { authorize }), {
    budget: new Budget(1000),
    clock,
  });
  await expect(running).rejects.toThrow(OutOfBudget);
});

const object = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'one', namespace: 'default', labels: { team: 'red' } },
};
const call = admissionCall({ resource: 'configmaps', object });

/** The outcome of conditions for the creation of one ConfigMap. */
function ask(...expressions: string[]) {
  const facts = factsOf(call);
  const admission = {
    call,
    facts,
    resource: facts.resource,
    kind: facts.kind,
    object,
    old: undefined,
  };
  const request = requestFields(admission, dialect);
  const inputs = { object, old: undefined, request, facts, user: call.context.user };
  const variables = requestVariables(inputs, admissionTools(), { costs: 'counted' });
  const named = expressions.map((expression, index) => ({ name: `c${index}`, expression }));
  return evaluateConditions(runInOnePiece(compileConditions(named)), variables, { clock });
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

  test('count failures before the first false condition', async () => {
    expect(await ask(failing, 'false')).toEqual({ matches: false, failed: 1 });
  });

  test('list failures, duplicates once', async () => {
    const missing = `expression '${failing}' resulted in error: no such key: absent`;
    expect(await ask('true', failing)).toEqual({ failures: missing, failed: 1 });
    expect(await ask(failing, failing)).toEqual({ failures: missing, failed: 2 });
    const result = await ask(failing, 'object.none == 1');
    expect(result.failures).toMatch(
      /^\[expression '.*no such key: absent, expression '.*: none\]$/,
    );
  });

  test('fail when they do not compile or are not conditions', async () => {
    expect((await ask('1 +')).failures).toMatch(/^compilation error: /);
    expect((await ask('"text"')).failures).toMatch(/^compilation error: /);
  });
});
