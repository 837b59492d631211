import {
  type ApiObject,
  appendAll,
  type Dialect,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  type JsonObject,
  notSupported,
  pathSegment,
  required,
  ruleErrors,
  seenBefore,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type {
  ParamRef,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicyBindingSpec,
} from '../gen/types/admissionregistration/v1.ts';
import type { LabelSelector } from '../gen/types/meta/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, goList, sortedKeys, validateConditions } from '../rules/checks.ts';
import { ensure, fillAbsent, objectAt } from '../rules/fill.ts';
import type { AdmissionKindOptions } from './expressions.ts';
import { fillMatchResources, matchOf, validateMatchResources } from './match-resources.ts';
import { paramKindColumn, validatePolicy } from './policy-rules.ts';

/** ValidatingAdmissionPolicy: expressions that may reject writes. */
export function validatingAdmissionPolicy(
  dialect: Dialect,
  options: AdmissionKindOptions = {},
): ResourceDef {
  const { checkExpression: check } = options;
  const rules = column('Validations', (object) => listAt(object, 'spec', 'validations').length, {
    type: 'integer',
    description: 'Number of validations.',
  });
  return defineKind<ValidatingAdmissionPolicy>({
    dialect,
    facts: 'admissionregistration',
    kind: 'ValidatingAdmissionPolicy',
    scope: 'Cluster',
    categories: ['api-extensions'],
    generation: true,
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(fillSteps),
        columns: [nameColumn, rules, paramKindColumn, ageColumn],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validatePolicy(object, { check }),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateStatus(object)
          : validatePolicy(object, { check, old }),
    },
    example: () => ({
      spec: {
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['apps'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['deployments'],
            },
          ],
        },
        validations: [{ expression: 'object.spec.replicas <= 5' }],
      },
    }),
  });
}

function* fillSteps(object: Stored<ValidatingAdmissionPolicy>): Generator<void, void> {
  fillAbsent(ensure(object, 'spec'), { failurePolicy: 'Fail' });
  yield* fillMatchResources(matchOf(object, 'matchConstraints'));
}

function* validateStatus(object: Stored<ValidatingAdmissionPolicy>): Generator<void, FieldError[]> {
  return [
    ...(yield* validateTypeChecking(object)),
    ...(yield* validateConditions(object.status?.conditions ?? [], 'status.conditions')),
  ];
}

/** Validates the warnings about expression types in a policy's status. */
function validateTypeChecking(
  object: Stored<ValidatingAdmissionPolicy>,
): Generator<void, FieldError[]> {
  const path = 'status.typeChecking.expressionWarnings';
  const warnings = object.status?.typeChecking?.expressionWarnings ?? [];
  return flatMapSteps(warnings, (warning, index) => [
    ...((warning.warning ?? '') === '' ? [required(`${path}[${index}].warning`)] : []),
    ...validateFieldRef((warning.fieldRef ?? '').trim(), `${path}[${index}].fieldRef`),
  ]);
}

function validateFieldRef(ref: string, field: string): FieldError[] {
  if (ref === '') return [required(field)];
  const problem = pathProblem(ref);
  return problem === undefined ? [] : [invalid(field, ref, `invalid JSONPath: ${problem}`)];
}

/** What brackets may contain: an index, a slice, a quoted name, `*`, or a filter. */
const inBrackets = /^(?:-?\d*(?::-?\d*){0,2}(?:,-?\d+)*|'[^']*'|"[^"]*"|\*|\?\(.*\))$/s;

/** Returns kube-apiserver's error for an invalid path; undefined for a valid one. */
function pathProblem(path: string): string | undefined {
  for (let at = path.indexOf('['); at >= 0; at = path.indexOf('[', at)) {
    const end = path.indexOf(']', at);
    if (end < 0) return 'unterminated array';
    const content = path.slice(at + 1, end).trim();
    if (content === '' || !inBrackets.test(content)) return `invalid array index ${content}`;
    at = end;
  }
  return undefined;
}

/** ValidatingAdmissionPolicyBinding: applies a policy to resources, with parameters. */
export function validatingAdmissionPolicyBinding(dialect: Dialect): ResourceDef {
  return bindingKind(dialect, {
    kind: 'ValidatingAdmissionPolicyBinding',
    version: 'v1',
    validate,
    spec: { validationActions: ['Deny'] },
  });
}

/** The differences between the kinds of policy bindings. */
interface BindingOptions {
  readonly kind: string;
  readonly version: string;
  /** Defaults of this version beyond those of `MatchResources`. */
  readonly defaults?: (object: JsonObject) => void;
  readonly validate: (object: JsonObject) => Generator<void, FieldError[]>;
  /** Members of the example's spec, in addition to the policy's name. */
  readonly spec: JsonObject;
}

/** A kind that binds policies of one kind to the objects that they validate or change. */
export function bindingKind(dialect: Dialect, options: BindingOptions): ResourceDef {
  const { kind, version, validate, spec } = options;
  return defineKind({
    dialect,
    facts: 'admissionregistration',
    kind,
    scope: 'Cluster',
    categories: ['api-extensions'],
    generation: true,
    versions: [
      {
        version,
        ...steppedDefaults<ApiObject>(function* (object) {
          yield* fillMatchResources(matchOf(object, 'matchResources'));
          options.defaults?.(object);
        }),
        columns: [
          nameColumn,
          column('PolicyName', (object) => textAt(object, 'spec', 'policyName'), {
            description: 'Name of the policy.',
          }),
          column('ParamRef', paramCell, { description: 'Reference to the parameters.' }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
    },
    example: () => ({ spec: { policyName: 'example', ...spec } }),
  });
}

function* validate(object: JsonObject): Generator<void, FieldError[]> {
  return [
    ...(yield* validateBindingBasis(object)),
    ...(yield* validateActions(ensure(object, 'spec'))),
  ];
}

/** Validates the fields that both kinds of binding share: all but the validation actions. */
export function* validateBindingBasis(object: JsonObject): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const policy = textAt(spec, 'policyName');
  const match = objectAt(spec, 'matchResources');
  return [
    ...(policy === ''
      ? [required('spec.policyName')]
      : ruleErrors('spec.policyName', policy, dnsSubdomain)),
    ...validateParamRef(objectAt(spec, 'paramRef'), 'spec.paramRef'),
    ...(match === undefined ? [] : yield* validateMatchResources(match, 'spec.matchResources')),
  ];
}

function validateParamRef(reference: Stored<ParamRef> | undefined, path: string): FieldError[] {
  if (reference === undefined) return [];
  const name = reference.name ?? '';
  const selector = reference.selector;
  const exclusive = 'name and selector are mutually exclusive';
  const errors = name === '' ? [] : ruleErrors(`${path}.name`, name, pathSegment);
  if (name !== '' && selector !== undefined) errors.push(forbiddenField(`${path}.name`, exclusive));
  appendAll(errors, validateLabelSelector(selector, `${path}.selector`));
  if (name !== '' && selector !== undefined) {
    errors.push(forbiddenField(`${path}.selector`, exclusive));
  }
  if (name === '' && selector === undefined) {
    errors.push(required(path, 'one of name or selector must be specified'));
  }
  return [...errors, ...validateMissingAction(reference, `${path}.parameterNotFoundAction`)];
}

function validateMissingAction(reference: Stored<ParamRef>, field: string): FieldError[] {
  const action = reference.parameterNotFoundAction ?? '';
  if (action === '') return [required(field)];
  const allowed = ['Deny', 'Allow'];
  return allowed.includes(action) ? [] : [notSupported(field, action, allowed)];
}

const actions = ['Audit', 'Deny', 'Warn'];

function* validateActions(
  spec: Stored<ValidatingAdmissionPolicyBindingSpec>,
): Generator<void, FieldError[]> {
  const specActions = (spec.validationActions ?? []).map(String);
  const field = 'spec.validationActions';
  if (specActions.length === 0)
    return [required(field, 'at least one validation action is required')];
  const isRepeated = seenBefore();
  const errors = yield* flatMapSteps(specActions, (action, index) => {
    const path = `${field}[${index}]`;
    return [
      ...(actions.includes(action) ? [] : [notSupported(path, action, actions)]),
      ...(isRepeated(action) ? [duplicate(path, action)] : []),
    ];
  });
  yield;
  if (specActions.includes('Deny') && specActions.includes('Warn')) {
    const detail =
      'must not contain both Deny and Warn (repeating the same validation failure information ' +
      'in the API response and headers serves no purpose)';
    const shown = goList('admissionregistration.ValidationAction', specActions);
    errors.push(invalidGo(field, () => shown, detail));
  }
  return errors;
}

/** The table cell with a binding's parameters: `namespace/name`, or the selector. */
function paramCell(object: Stored<ValidatingAdmissionPolicyBinding>): string {
  const ref = object.spec?.paramRef;
  if (ref === undefined) return '<unset>';
  const [name, namespace] = [ref.name ?? '', ref.namespace ?? ''];
  if (name !== '') return `${namespace || '*'}/${name}`;
  const selector = ref.selector;
  return selector === undefined ? '<unset>' : selectorFields(selector);
}

/** A selector in the form that kube-apiserver's table shows: Go's, with field names. */
function selectorFields(selector: Stored<LabelSelector>): string {
  const labels = selector.matchLabels;
  const pairs = sortedKeys(labels).map((key) => `${key}: ${textAt(labels, key)},`);
  const requirements = (selector.matchExpressions ?? []).map((matchExpression) => {
    const values = (matchExpression.values ?? []).join(' ');
    const [key, operator] = [matchExpression.key ?? '', matchExpression.operator ?? ''];
    return `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values}],},`;
  });
  return (
    `&LabelSelector{MatchLabels:map[string]string{${pairs.join('')}},` +
    `MatchExpressions:[]LabelSelectorRequirement{${requirements.join('')}},}`
  );
}

/** Sets the default of `v1alpha1`, which denies requests if no parameters are found. */
export function fillMissingAction(object: JsonObject): void {
  fillAbsent(objectAt(object, 'spec', 'paramRef'), { parameterNotFoundAction: 'Deny' });
}
