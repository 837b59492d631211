import { runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { compileExpression, type ExpressionUse, expressionProblem } from './check-expression.ts';
import { intType, stringType, type Type } from './types/types.ts';

const always = ['object', 'oldObject', 'request', 'namespaceObject'];
const bool: ExpressionUse = {
  variables: [...always, 'params', 'authorizer'],
  resultTypes: ['bool'],
};

const problemOf = (source: string, use: Partial<ExpressionUse> = {}) =>
  runInOnePiece(expressionProblem(source, { ...bool, ...use }))?.detail;

describe('variables of expressions about a request', () => {
  test.each([
    "request.kind.group == 'a' && request.kind.version == 'v1' && request.kind.kind == 'A'",
    "request.resource.group == 'a' && request.resource.resource == 'b'",
    "request.subResource == 'scale' && request.requestSubResource == 'scale'",
    "request.requestKind.kind == 'A' && request.requestResource.version == 'v1'",
    "request.name == 'a' && request.namespace == 'b' && request.operation == 'CREATE'",
    "request.userInfo.username == 'admin' && request.userInfo.uid == '1'",
    "request.userInfo.groups == ['a', 'b'] && request.userInfo.extra == {'c': ['d']}",
    "request.dryRun == false && request.options == {'any': 'thing'}",
    "namespaceObject != null && namespaceObject.metadata.name.startsWith('a')",
    "'a' in namespaceObject.metadata.labels && 'b' in namespaceObject.metadata.annotations",
    "namespaceObject.metadata.UID == '1' && namespaceObject.metadata.resourceVersion == '2'",
    'type(namespaceObject.metadata.creationTimestamp) == google.protobuf.Timestamp',
    'namespaceObject.metadata.deletionGracePeriodSeconds == 5',
    'namespaceObject.metadata.generation == 2 && namespaceObject.metadata.deletionTimestamp != null',
    "namespaceObject.metadata.finalizers[0] == 'a' && namespaceObject.spec.finalizers[0] == 'a'",
    "namespaceObject.status.phase == 'Active' && namespaceObject.status.conditions[0].type == 'A'",
    'type(namespaceObject.status.conditions[0].lastTransitionTime) == google.protobuf.Timestamp',
    "authorizer.group('') != null && authorizer.requestResource.check('get').allowed()",
    "authorizer.serviceAccount('a', 'b').path('/x').check('get').reason() == ''",
    "authorizer.group('').resource('a').subresource('b').namespace('c').name('d').check('e').errored()",
    "authorizer.group('').resource('a').fieldSelector('b=c').labelSelector('d').check('e').error() == ''",
    'object.foo < params.x && (oldObject == null || object.foo == oldObject.foo)',
  ])('%s', (source) => {
    expect(problemOf(source)).toBeUndefined();
    expect(
      problemOf(`string(${source})`, { resultTypes: ['string', 'null_type'] }),
    ).toBeUndefined();
  });

  test.each([
    ["request.foo == 'no'", "undefined field 'foo'"],
    ["request.uid == 'no'", "undefined field 'uid'"],
    ["request.object == 'no'", "undefined field 'object'"],
    ["request.resource.foo == 'no'", "undefined field 'foo'"],
    ["request.requestKind.foo == 'no'", "undefined field 'foo'"],
    ["request.userInfo.foo == 'no'", "undefined field 'foo'"],
    ["request.name.foo == 'no'", "type 'string' does not support field selection"],
    ["namespaceObject.foo == 'no'", "undefined field 'foo'"],
    ["namespaceObject.metadata.ownerReferences == 'no'", "undefined field 'ownerReferences'"],
    ["namespaceObject.status.conditions[0].foo == 'no'", "undefined field 'foo'"],
    ["variables.a == 'no'", "undeclared reference to 'variables' (in container '')"],
    [
      "type(quantity('1')) == kubernetes.Quantity",
      "undeclared reference to 'kubernetes' (in container '')",
    ],
    [
      '(duration * "0s") == duration',
      "found no matching overload for '_*_' applied to '(type(duration), string)'",
    ],
    ["type(ip('::1')) == net.IP && a", "undeclared reference to 'a' (in container '')"],
    ['authorizer.foo', "unexpected failed resolution of 'kubernetes.authorization.Authorizer'"],
    ["quantity('1').foo", "unexpected failed resolution of 'kubernetes.Quantity'"],
    ["ip('::1').foo", "type 'net.IP' does not support field selection"],
    [
      'authorizer.allowed()',
      "found no matching overload for 'allowed' applied to 'kubernetes.authorization.Authorizer.()'",
    ],
    [
      "authorizer.group('').check('get').allowed()",
      "found no matching overload for 'check' applied to " +
        "'kubernetes.authorization.GroupCheck.(string)'",
    ],
    [
      'authorizer.group(1) != null',
      "found no matching overload for 'group' applied to " +
        "'kubernetes.authorization.Authorizer.(int)'",
    ],
    ["object.check('x')[0", "Syntax error: missing ']'"],
    ["jsonpatch.escapeKey('a') == ''", "undeclared reference to 'jsonpatch' (in container '')"],
  ])('rejects %s', (source, resultTypes) => {
    expect(problemOf(source)).toContain(`compilation failed: ERROR: <input>:1:`);
    expect(problemOf(source)).toContain(resultTypes);
  });

  test('without an authorizer, its functions exist and the variable does not', () => {
    const without = { variables: always };
    const problem = problemOf("authorizer.path('/').check('get').allowed()", without);
    expect(problem).toContain("undeclared reference to 'authorizer' (in container '')");
    expect(problem).not.toContain("'path'");
    expect(problemOf("request.name.check('get')", without)).toContain(
      "found no matching overload for 'check' applied to 'string.(string)'",
    );
  });

  test.each([
    ["timestamp('2020-01-01T00:00:00Z')", 'google.protobuf.Timestamp'],
    ["[duration('1s')]", 'list(google.protobuf.Duration)'],
    ['null', 'null_type'],
    ['object.a', 'dyn'],
    ['object.?a', 'optional_type(dyn)'],
    ['namespaceObject.metadata.labels', 'map(string, string)'],
    ['type(1)', 'type(int)'],
    ['request.userInfo', 'kubernetes.UserInfo'],
  ])('%s is not a bool but %s', (source, type) => {
    expect(problemOf(source)).toBe(`must evaluate to bool but got ${type}`);
    expect(problemOf(source, { resultTypes: ['string', 'int'] })).toBe(
      `must evaluate to one of [string int] but got ${type}`,
    );
  });

  test.each([
    // The type of a conditional is that of the more general branch, whichever comes first.
    ['has(object.a) ? null : object.b', 'dyn'],
    ['has(object.a) ? 1 : object.b', 'dyn'],
    ['has(object.a) ? object.b : 1', 'dyn'],
    ["has(object.a) ? ['a'] : [object.b]", 'list(dyn)'],
    ["has(object.a) ? [object.b] : ['a']", 'list(dyn)'],
    ["has(object.a) ? {'a': 1} : {'a': object.b}", 'map(string, dyn)'],
    ["has(object.a) ? null : timestamp('2020-01-01T00:00:00Z')", 'null_type'],
    ['has(object.a) ? 1 : (has(object.b) ? 2 : object.c)', 'dyn'],
    ['has(object.a) ? optional.of(1) : optional.of(object.b)', 'optional_type(dyn)'],
  ])('%s is %s', (source, type) => {
    expect(problemOf(source)).toBe(`must evaluate to bool but got ${type}`);
  });

  test('the elements after an invalid one are checked', () => {
    const problem = problemOf("[true ? 1 : 'a', duration('1s')].exists(x, x == [1])");
    expect(problem).toContain("'_?_:_' applied to '(bool, int, string)'");
    expect(problem).toContain("'_==_' applied to '(duration, list(int))'");
  });

  test('an expression that cannot become a program is a server error', () => {
    expect(runInOnePiece(expressionProblem("object.a.find('(') == ''", bool))).toEqual({
      detail: expect.stringMatching(/^program instantiation failed: error parsing regexp/),
      type: 'internal',
    });
  });
});

describe('variables of a policy', () => {
  const list = [
    { name: 'number', expression: '1' },
    { name: 'texts', expression: "['a']" },
    { name: 'user', expression: 'request.userInfo' },
    { name: 'users', expression: '[request.userInfo]' },
    { name: 'maybe', expression: 'object.?a' },
    { name: 'amount', expression: "quantity('1')" },
    { name: 'may', expression: "authorizer.path('/').check('get').allowed()" },
    { name: 'wrong', expression: 'odd' },
    { name: 'blank', expression: ' ' },
    { name: 'again', expression: 'variables.number + 1' },
  ];
  const variables = [...bool.variables, 'variables'];
  const inPolicy = (source: string, before?: number) =>
    problemOf(source, {
      variables,
      own: before === undefined ? { list } : { list, before },
      resultTypes: [],
    });

  test.each([
    'variables.number + 1',
    "variables.texts[0] + 'a'",
    // Values of type dyn: objects, optional values, and values with functions only.
    'variables.user.nothing',
    'variables.users[0].nothing',
    'variables.maybe.nothing',
    'variables.amount.nothing',
    'variables.wrong.nothing',
    '!variables.may',
    'variables.again + 1',
  ])('%s', (source) => {
    expect(inPolicy(source)).toBeUndefined();
  });

  test.each([
    ['variables.none', "undefined field 'none'"],
    ['variables.blank', "undefined field 'blank'"],
    ["variables.number == 'a'", "no matching overload for '_==_' applied to '(int, string)'"],
    ['variables.texts[0] + 1', "no matching overload for '_+_' applied to '(string, int)'"],
    ["variables.again == 'a'", "no matching overload for '_==_' applied to '(int, string)'"],
  ])('rejects %s', (source, resultTypes) => {
    expect(inPolicy(source)).toContain(resultTypes);
  });

  test('of two variables with one name, the later applies from its index on', () => {
    const list = [
      { name: 'a', expression: '1' },
      { name: 'b', expression: 'true' },
      { name: 'a', expression: "'text'" },
    ];
    const problemAt = (source: string, before: number) =>
      problemOf(source, {
        variables: [...always, 'variables'],
        own: { list, before },
        resultTypes: ['bool'],
      });
    expect(problemAt('variables.a == 1', 2)).toBeUndefined();
    expect(problemAt("variables.a == 'x'", 3)).toBeUndefined();
    expect(problemAt("variables.a == 'x'", 2)).toContain('found no matching overload');
    expect(problemAt('variables.a == 1', 0)).toContain("undefined field 'a'");
  });

  test('are visible after their declaration', () => {
    expect(inPolicy('variables.number', 0)).toContain("undefined field 'number'");
    expect(inPolicy('variables.number', 1)).toBeUndefined();
    expect(inPolicy('variables.texts', 1)).toContain("undefined field 'texts'");
  });

  test('messages may use variables that call the authorizer, but not call it themselves', () => {
    const inMessage = {
      variables: [...always, 'variables'],
      own: { list },
      resultTypes: ['string'],
    };
    expect(problemOf('string(variables.may)', inMessage)).toBeUndefined();
    expect(problemOf("authorizer.path('/').check('get').reason()", inMessage)).toContain(
      "undeclared reference to 'authorizer'",
    );
  });

  test('type checking against a kind does not know the request’s own resource', () => {
    const fields = new Map<string, Type>([
      ['a', stringType],
      ['b', intType],
    ]);
    const typed = new Map([['object', { name: 'A', args: [], fields }]]);
    const typedList = [{ name: 'b', expression: 'object.b' }];
    const use = { variables, resultTypes: [], own: { list: typedList }, typed };
    const check = (source: string) => {
      const compiled = runInOnePiece(compileExpression(source, use));
      return 'problem' in compiled ? compiled.problem : undefined;
    };
    expect(check("variables.b == 1 && object.a == ''")).toBeUndefined();
    expect(check("variables.b == ''")).toContain("applied to '(int, string)'");
    expect(check('object.c')).toContain("undefined field 'c'");
    expect(check("authorizer.path('/').check('get').allowed()")).toBeUndefined();
    expect(check("authorizer.requestResource.check('get').allowed()")).toContain(
      "unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
    );
  });
});

describe('variables of selectors of devices', () => {
  const use: ExpressionUse = {
    variables: ['device'],
    resultTypes: ['bool', 'dyn'],
    costMax: 1_000_000,
  };

  test.each([
    'cel.bind(dra, device.attributes["dra.example.com"], dra.one && dra.other)',
    'cel.bind(device, 1, device == 1)',
    'cel.bind(x, device.driver, x == "a" && cel.bind(y, x, y.startsWith("b")))',
    'cel.bind(x, cel.bind(x, 1, x), x == 1)',
    'cel.bind(x, device.capacity["a"], x.b.isGreaterThan(quantity("1")))',
  ])('%s', (source) => {
    expect(runInOnePiece(expressionProblem(source, use))).toBeUndefined();
  });

  test.each([
    ['cel.bind(x.y, 1, true)', '1:11: cel.bind() variable names must be simple identifiers'],
    ['cel.bind(x, 1)', "1:1: undeclared reference to 'cel'"],
    ['cel.bind(x, 1, y)', "1:16: undeclared reference to 'y'"],
    ['cel.bind(x, true, x.y)', "type 'bool' does not support field selection"],
    ['cel.bind(x, 1, x)', 'must evaluate to bool or the unknown type, not int'],
    ['cel.bind(x, [1], x.all(y, y > 0))', 'too complex, exceeds cost limit'],
  ])('not %s', (source, detail) => {
    expect(runInOnePiece(expressionProblem(source, use))?.detail).toContain(detail);
  });

  test('bound values are visible only inside', () => {
    const detail = runInOnePiece(expressionProblem('cel.bind(x, true, x)', bool))?.detail;
    expect(detail).toContain("undeclared reference to 'cel'");
  });

  test('a bound name has its value', () => {
    const compiled = runInOnePiece(
      compileExpression('cel.bind(x, device.a, x + cel.bind(x, 3, x))', {
        ...use,
        resultTypes: [],
        typed: new Map([['device', { name: 'any', args: [] }]]),
      }),
    );
    if ('problem' in compiled) throw new Error(compiled.problem);
    expect(compiled.used).toEqual(new Set(['device']));
  });
});
