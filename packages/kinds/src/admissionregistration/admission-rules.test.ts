import { expressionProblem } from '@wheelhouse/cel/testing';
import { dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  createErrors,
  kindOf,
  type Mutation,
  mutated,
  type Row,
  testCreates,
  updateErrors,
} from '../kind.suite.ts';
import type { ExpressionChecker } from './expressions.ts';
import { validatingAdmissionPolicy } from './validating-admission-policy.ts';
import { mutatingWebhookConfiguration } from './webhook-configurations.ts';

const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };

describe('webhook configurations', () => {
  const def = kindOf('MutatingWebhookConfiguration');
  const good: JsonObject = {
    webhooks: [
      {
        name: 'a.example.com',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url: 'https://example.com/a' },
        rules: [rule],
      },
    ],
  };
  const hook = (more: JsonObject): Mutation =>
    Object.fromEntries(Object.entries(more).map(([name, value]) => [`webhooks.0.${name}`, value]));
  const ruleWith = (more: JsonObject) => hook({ rules: [{ ...rule, ...more }] });
  const at = 'webhooks[0]';
  const url = `${at}.clientConfig.url`;
  const form = '; desired format: https://host[/path]';
  const rows: readonly Row[] = [
    [{}, []],
    [
      hook({ name: 'short' }),
      [
        `${at}.name: Invalid value: "short": should be a domain with at least three segments separated by dots`,
      ],
    ],
    [
      { 'webhooks.1': (good['webhooks'] as JsonObject[])[0] },
      ['webhooks[1].name: Duplicate value: "a.example.com"'],
    ],
    [
      hook({ sideEffects: 'Some' }),
      [`${at}.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`],
    ],
    [
      { 'webhooks.0.sideEffects': undefined },
      [`${at}.sideEffects: Required value: must specify one of None, NoneOnDryRun`],
    ],
    [
      hook({ failurePolicy: 'Odd', matchPolicy: 'Odd', reinvocationPolicy: 'Odd' }),
      [
        `${at}.failurePolicy: Unsupported value: "Odd": supported values: "Fail", "Ignore"`,
        `${at}.matchPolicy: Unsupported value: "Odd": supported values: "Equivalent", "Exact"`,
        `${at}.reinvocationPolicy: Unsupported value: "Odd": supported values: "IfNeeded", "Never"`,
      ],
    ],
    [
      hook({ timeoutSeconds: 31 }),
      [
        `${at}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`,
      ],
    ],
    [
      hook({ admissionReviewVersions: ['v2', 'v2'] }),
      [
        `${at}.admissionReviewVersions[1]: Invalid value: "v2": duplicate version`,
        `${at}.admissionReviewVersions: Invalid value: []string{"v2", "v2"}: ` +
          'must include at least one of v1, v1beta1',
      ],
    ],
    [
      hook({ admissionReviewVersions: [] }),
      [`${at}.admissionReviewVersions: Required value: must specify one of v1, v1beta1`],
    ],
    [
      hook({ clientConfig: {} }),
      [`${at}.clientConfig: Required value: exactly one of url or service is required`],
    ],
    [
      hook({ clientConfig: { url: 'http://u:p@example.com/?q=1#f' } }),
      [
        `${url}: Invalid value: "http": 'https' is the only allowed URL scheme${form}`,
        `${url}: Invalid value: "u:p": user information is not permitted in the URL`,
        `${url}: Invalid value: "f": fragments are not permitted in the URL`,
        `${url}: Invalid value: "q=1": query parameters are not permitted in the URL`,
      ],
    ],
    [
      hook({ clientConfig: { url: 'example.com' } }),
      [
        `${url}: Invalid value: "": 'https' is the only allowed URL scheme${form}`,
        `${url}: Invalid value: "": host must be specified${form}`,
      ],
    ],
    [
      hook({ clientConfig: { service: { port: 70000, path: '/a//B' } } }),
      [
        `${at}.clientConfig.service.name: Required value: service name is required`,
        `${at}.clientConfig.service.namespace: Required value: service namespace is required`,
        `${at}.clientConfig.service.port: Invalid value: 70000: ` +
          'port is not valid: must be between 1 and 65535, inclusive',
        `${at}.clientConfig.service.path: Invalid value: "/a//B": segment[1] may not be empty`,
        expect.stringContaining(
          `${at}.clientConfig.service.path: Invalid value: "/a//B": segment[2]: a lowercase RFC 1123`,
        ) as string,
      ],
    ],
    [ruleWith({ operations: [] }), [`${at}.rules[0].operations: Required value`]],
    [
      ruleWith({ operations: ['*', 'ODD'] }),
      [
        `${at}.rules[0].operations: Invalid value: []admissionregistration.OperationType{"*", "ODD"}: ` +
          "if '*' is present, must not specify other operations",
        `${at}.rules[0].operations[1]: Unsupported value: "ODD": ` +
          'supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
      ],
    ],
    [
      ruleWith({ apiGroups: ['*', 'a'], apiVersions: [''], resources: ['', 'a/*', 'a/b'] }),
      [
        `${at}.rules[0].apiGroups: Invalid value: []string{"*", "a"}: ` +
          "if '*' is present, must not specify other API groups",
        `${at}.rules[0].apiVersions[0]: Required value`,
        `${at}.rules[0].resources[0]: Required value`,
        `${at}.rules[0].resources[2]: Invalid value: "a/b": if 'a/*' is present, must not specify a/b`,
      ],
    ],
    [
      ruleWith({ resources: ['*', 'pods'] }),
      [
        `${at}.rules[0].resources: Invalid value: []string{"*", "pods"}: ` +
          "if '*' is present, must not specify other resources without subresources",
      ],
    ],
    [
      ruleWith({ resources: ['*/*', 'pods'], scope: 'Odd' }),
      [
        `${at}.rules[0].resources: Invalid value: []string{"*/*", "pods"}: ` +
          "if '*/*' is present, must not specify other resources",
        `${at}.rules[0].scope: Unsupported value: "Odd": supported values: "*", "Cluster", "Namespaced"`,
      ],
    ],
    [
      hook({
        matchConditions: [
          { expression: ' ' },
          { name: 'a', expression: 'true' },
          { name: 'a', expression: 'true' },
        ],
      }),
      [
        `${at}.matchConditions[0].expression: Required value`,
        `${at}.matchConditions[0].name: Required value`,
        `${at}.matchConditions[2].name: Duplicate value: "a"`,
      ],
    ],
  ];
  testCreates(def, good, rows);

  test('an update may keep errors of the old object', () => {
    const from = mutated(good, hook({ sideEffects: 'Some', admissionReviewVersions: ['v9'] }));
    const to = mutated(from, hook({ timeoutSeconds: 5 }));
    expect(updateErrors(def, { from, to })).toEqual([]);
    expect(updateErrors(def, { from: good, to })).toHaveLength(2);
  });
});

describe('ValidatingAdmissionPolicy', () => {
  const def = kindOf('ValidatingAdmissionPolicy');
  const good: JsonObject = {
    spec: { matchConstraints: { resourceRules: [rule] }, validations: [{ expression: 'true' }] },
  };
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'spec.failurePolicy': 'Odd' },
      ['spec.failurePolicy: Unsupported value: "Odd": supported values: "Fail", "Ignore"'],
    ],
    [
      { 'spec.paramKind': { apiVersion: 'a/b/c', kind: 'A_B' } },
      [
        'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        expect.stringContaining(
          'spec.paramKind.kind: Invalid value: "A_B": may have mixed case, but should otherwise match: ',
        ) as string,
      ],
    ],
    [{ 'spec.matchConstraints': undefined }, ['spec.matchConstraints: Required value']],
    [
      { 'spec.matchConstraints.resourceRules': [] },
      ['spec.matchConstraints.resourceRules: Required value'],
    ],
    [
      { 'spec.matchConstraints.resourceRules.0.resourceNames': ['a', 'a', 'b/c'] },
      [
        'spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
        'spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": ' +
          "may not contain '/'",
      ],
    ],
    [
      { 'spec.validations': [] },
      [
        'spec.validations: Required value: validations or auditAnnotations must contain at least one item',
        'spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item',
      ],
    ],
    [
      {
        'spec.validations.0': {
          expression: ' ',
          message: 'a\nb',
          messageExpression: ' ',
          reason: 'Odd',
        },
      },
      [
        'spec.validations[0].expression: Required value: expression is not specified',
        'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
        'spec.validations[0].message: Invalid value: "a\\nb": message must not contain line breaks',
        'spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", ' +
          '"Invalid", "RequestEntityTooLarge"',
      ],
    ],
    [
      { 'spec.variables': [{ name: 'in', expression: '' }] },
      [
        'spec.variables[0].name: Invalid value: "in": name is not a valid CEL identifier',
        'spec.variables[0].expression: Required value: expression is not specified',
      ],
    ],
    [
      {
        'spec.auditAnnotations': [
          { key: 'k', valueExpression: "'v'" },
          { key: 'k', valueExpression: '' },
        ],
      },
      [
        'spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified',
        'spec.auditAnnotations[1].key: Duplicate value: "k"',
      ],
    ],
  ];
  testCreates(def, good, rows);
});

describe('ValidatingAdmissionPolicyBinding', () => {
  const def = kindOf('ValidatingAdmissionPolicyBinding');
  const good: JsonObject = { spec: { policyName: 'p', validationActions: ['Deny'] } };
  const rows: readonly Row[] = [
    [{}, []],
    [{ 'spec.policyName': undefined }, ['spec.policyName: Required value']],
    [
      { 'spec.validationActions': [] },
      ['spec.validationActions: Required value: at least one validation action is required'],
    ],
    [
      { 'spec.validationActions': ['Deny', 'Warn', 'Deny', 'Odd'] },
      [
        'spec.validationActions[2]: Duplicate value: "Deny"',
        'spec.validationActions[3]: Unsupported value: "Odd": supported values: "Audit", "Deny", "Warn"',
        'spec.validationActions: Invalid value: []admissionregistration.ValidationAction{"Deny", ' +
          '"Warn", "Deny", "Odd"}: must not contain both Deny and Warn (repeating the same validation ' +
          'failure information in the API response and headers serves no purpose)',
      ],
    ],
    [
      { 'spec.paramRef': { name: 'a', selector: {}, parameterNotFoundAction: 'Odd' } },
      [
        'spec.paramRef.name: Forbidden: name and selector are mutually exclusive',
        'spec.paramRef.selector: Forbidden: name and selector are mutually exclusive',
        'spec.paramRef.parameterNotFoundAction: Unsupported value: "Odd": ' +
          'supported values: "Deny", "Allow"',
      ],
    ],
    [
      { 'spec.paramRef': {} },
      [
        'spec.paramRef: Required value: one of name or selector must be specified',
        'spec.paramRef.parameterNotFoundAction: Required value',
      ],
    ],
  ];
  testCreates(def, good, rows);
});

describe('expressions', () => {
  const check: ExpressionChecker = (source, use) => expressionProblem(source, use);
  const policy = validatingAdmissionPolicy(dialectOf('svc'), { checkExpression: check });
  const hooks = mutatingWebhookConfiguration(dialectOf('svc'), { checkExpression: check });
  const good: JsonObject = {
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'object.a > 3 && request.name == "c"' }],
    },
  };
  const undeclared = (name: string) =>
    `compilation failed: ERROR: <input>:1:1: undeclared reference to '${name}' (in container '')\n` +
    ` | ${name}\n | ^`;
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'spec.validations.0.expression': 'object.a' },
      [
        'spec.validations[0].expression: Invalid value: "object.a": must evaluate to bool but got dyn',
      ],
    ],
    [
      { 'spec.validations.0.expression': 'params' },
      [`spec.validations[0].expression: Invalid value: "params": ${undeclared('params')}`],
    ],
    [
      {
        'spec.paramKind': { apiVersion: 'v1', kind: 'ConfigMap' },
        'spec.validations.0.expression': 'params.a == "b"',
      },
      [],
    ],
    [
      {
        'spec.variables': [{ name: 'v', expression: 'object.b' }],
        'spec.validations.0.expression': 'variables.v == 1',
      },
      [],
    ],
    [
      { 'spec.variables': [{ name: 'v', expression: 'odd' }] },
      [`spec.variables[0].expression: Invalid value: "odd": ${undeclared('odd')}`],
    ],
    [
      { 'spec.validations.0.messageExpression': '1' },
      [
        'spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int',
      ],
    ],
    [
      { 'spec.auditAnnotations': [{ key: 'k', valueExpression: '1' }] },
      [
        'spec.auditAnnotations[0].valueExpression: Invalid value: "1": ' +
          'must evaluate to one of [string null_type] but got int',
      ],
    ],
    [
      { 'spec.matchConditions': [{ name: 'a', expression: '"x"' }] },
      [
        'spec.matchConditions[0].expression: Invalid value: "\\"x\\"": must evaluate to bool but got string',
      ],
    ],
    [
      {
        'spec.validations.0.expression':
          "authorizer.group('').resource('pods').check('get').allowed()",
      },
      [],
    ],
  ];
  testCreates(policy, good, rows);

  test('an update does not validate unchanged match conditions', () => {
    const webhook = {
      name: 'a.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { url: 'https://example.com/a' },
      matchConditions: [{ name: 'a', expression: 'odd' }],
    };
    expect(createErrors(hooks, { webhooks: [webhook] })).toEqual([
      `webhooks[0].matchConditions[0].expression: Invalid value: "odd": ${undeclared('odd')}`,
    ]);
    const from = { webhooks: [webhook] };
    const to = { webhooks: [{ ...webhook, timeoutSeconds: 3 }] };
    expect(updateErrors(hooks, { from, to })).toEqual([]);
  });
});
