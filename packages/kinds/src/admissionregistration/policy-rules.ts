import {
  appendAll,
  dns1035Label,
  dnsSubdomain,
  duplicate,
  type FieldError,
  goItems,
  invalid,
  invalidGo,
  notSupported,
  qualifiedName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { column, textAt } from '../cells.ts';
import type {
  AuditAnnotation,
  MatchResources,
  ParamKind,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicySpec,
  Validation,
  Variable,
} from '../gen/types/admissionregistration/v1.ts';
import type {
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicySpec,
} from '../gen/types/admissionregistration/v1alpha1.ts';
import type { Stored } from '../resource-def.ts';
import { expressionsPerStep, flatMapSteps, same, sameSteps } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import {
  checkedExpression,
  type ExpressionChecker,
  namesFor,
  type OwnVariables,
  storedChecker,
  validateMatchConditions,
} from './expressions.ts';
import { validateMatchResources } from './match-resources.ts';

const failurePolicies = ['Fail', 'Ignore'];
const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];
const annotationsMax = 20;
const valueExpressionBytesMax = 5 * 1024;

/** The table column with the kind of a policy's parameters. */
export const paramKindColumn = column(
  'ParamKind',
  (object) => {
    const kind = objectAt(object, 'spec', 'paramKind');
    return kind === undefined ? '<unset>' : `${textAt(kind, 'apiVersion')}/${textAt(kind, 'kind')}`;
  },
  { description: 'Kind of the parameters.' },
);

interface PolicyOptions {
  readonly check?: ExpressionChecker | undefined;
  /** Absent on create. */
  readonly old?: Stored<ValidatingAdmissionPolicy | MutatingAdmissionPolicy>;
  /** Applies further rules to the operations of the constraints. */
  readonly validateOperations?: (
    match: Stored<MatchResources> | undefined,
    path: string,
  ) => Generator<void, FieldError[]>;
}

/** The context in which the expressions of one policy are validated. */
export interface PolicyScope {
  readonly check: ExpressionChecker | undefined;
  readonly params: boolean;
  /** Whether the policy has variables; otherwise the name `variables` is undeclared. */
  readonly variables: boolean;
  readonly own: OwnVariables;
}

/** Validates a ValidatingAdmissionPolicy except its metadata. */
export function* validatePolicy(
  object: Stored<ValidatingAdmissionPolicy>,
  options: PolicyOptions,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  const scope = yield* policyScope(spec, options);
  return [
    ...(yield* validatePolicyBasis(object, { ...options, scope })),
    ...(yield* validateChecks(spec, object.metadata.name ?? '', scope)),
  ];
}

/** Returns the context in which the expressions of a policy are validated, in steps. */
export function* policyScope(
  spec: Stored<ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec>,
  { check, old }: Pick<PolicyOptions, 'check' | 'old'>,
): Generator<void, PolicyScope> {
  const params = spec.paramKind !== undefined;
  const list = (spec.variables ?? []).map((variable) => ({
    name: variable.name ?? '',
    expression: variable.expression ?? '',
  }));
  const isKept = old !== undefined && (yield* sameSteps(spec, old.spec ?? {}));
  return {
    check: isKept ? storedChecker(check) : check,
    params,
    variables: list.length > 0,
    own: { list },
  };
}

/** Validates the fields that both kinds of policy share: all but validations and mutations. */
export function* validatePolicyBasis(
  object: Stored<ValidatingAdmissionPolicy | MutatingAdmissionPolicy>,
  { scope, old, validateOperations }: PolicyOptions & { readonly scope: PolicyScope },
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  const conditions = spec.matchConditions ?? [];
  const { list } = scope.own;
  const contextOf = (policy: Stored<ValidatingAdmissionPolicy | MutatingAdmissionPolicy>) => [
    policy.spec?.paramKind ?? null,
    [...(policy.spec?.matchConditions ?? [])],
  ];
  const areUnchanged = old !== undefined && same(contextOf(object), contextOf(old));
  return [
    ...validateFailurePolicy(spec),
    ...validateParamKind(spec.paramKind, 'spec.paramKind'),
    ...(yield* validateConstraints(spec.matchConstraints, 'spec.matchConstraints')),
    ...(validateOperations === undefined
      ? []
      : yield* validateOperations(spec.matchConstraints, 'spec.matchConstraints')),
    ...(areUnchanged
      ? []
      : yield* validateMatchConditions(conditions, 'spec.matchConditions', scope)),
    ...(yield* flatMapSteps(
      spec.variables ?? [],
      (variable, before) =>
        validateVariable(variable, `spec.variables[${before}]`, {
          ...scope,
          own: { list, before },
        }),
      expressionsPerStep,
    )),
  ];
}

function validateFailurePolicy(
  spec: Stored<ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec>,
): FieldError[] {
  const policy = spec.failurePolicy;
  const field = 'spec.failurePolicy';
  if (policy === undefined) return [required(field)];
  if (failurePolicies.includes(String(policy))) return [];
  return [notSupported(field, policy, failurePolicies)];
}

function validateParamKind(kind: Stored<ParamKind> | undefined, path: string): FieldError[] {
  if (kind === undefined) return [];
  const name = kind.kind ?? '';
  const field = `${path}.kind`;
  const messages = dns1035Label(name.toLowerCase());
  const mixed = 'may have mixed case, but should otherwise match: ';
  const wrong =
    messages.length === 0 ? [] : [invalid(field, name, `${mixed}${messages.join(',')}`)];
  return [
    ...validateApiVersion(kind.apiVersion ?? '', `${path}.apiVersion`),
    ...(name === '' ? [required(field)] : wrong),
  ];
}

function validateApiVersion(text: string, field: string): FieldError[] {
  if (text === '') return [required(field)];
  const parts = text === '/' ? ['', ''] : text.split('/');
  if (parts.length > 2) return [invalid(field, text, `unexpected GroupVersion string: ${text}`)];
  const version = parts.at(-1) ?? '';
  const group = parts.length === 2 ? (parts[0] ?? '') : '';
  const joined = (value: string, messages: readonly string[]) =>
    messages.length === 0 ? [] : [invalid(field, value, messages.join(','))];
  return [
    ...(group === '' ? [] : joined(group, dnsSubdomain(group))),
    ...(version === ''
      ? [invalid(field, text, 'version must be specified')]
      : joined(version, dns1035Label(version))),
  ];
}

function* validateConstraints(
  match: Stored<MatchResources> | undefined,
  path: string,
): Generator<void, FieldError[]> {
  if (match === undefined) return [required(path)];
  const hasRule = (match.resourceRules ?? []).length > 0;
  return [
    ...(yield* validateMatchResources(match, path)),
    ...(hasRule ? [] : [required(`${path}.resourceRules`)]),
  ];
}

const reserved = new Set(
  'as break const continue else false for function if import in let loop package namespace null return true var void while'.split(
    ' ',
  ),
);

const isIdentifier = (name: string) => /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !reserved.has(name);

function* validateVariable(
  variable: Stored<Variable>,
  path: string,
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const name = variable.name ?? '';
  const errors: FieldError[] = [];
  if (name.trim() === '') errors.push(required(`${path}.name`, 'name is not specified'));
  else if (!isIdentifier(name)) {
    errors.push(invalid(`${path}.name`, name, 'name is not a valid CEL identifier'));
  }
  const expression = variable.expression ?? '';
  const field = `${path}.expression`;
  if (expression.trim() === '') return [...errors, required(field, 'expression is not specified')];
  const { check, own } = scope;
  const use = { field, check, variables: namesFor(scope), resultTypes: [], own };
  return [...errors, ...(yield* checkedExpression(expression, use))];
}

function* validateChecks(
  spec: Stored<ValidatingAdmissionPolicySpec>,
  name: string,
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const validations = spec.validations ?? [];
  const annotations = spec.auditAnnotations ?? [];
  if (validations.length === 0 && annotations.length === 0) {
    const detail = 'validations or auditAnnotations must contain at least one item';
    return [required('spec.validations', detail), required('spec.auditAnnotations', detail)];
  }
  return [
    ...(yield* flatMapSteps(
      validations,
      (validation, index) => validateValidation(validation, `spec.validations[${index}]`, scope),
      expressionsPerStep,
    )),
    ...(yield* validateAnnotations(annotations, name, scope)),
  ];
}

function* validateValidation(
  validation: Stored<Validation>,
  path: string,
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const reason = validation.reason;
  const isSupported = reason === undefined || reasons.includes(String(reason));
  const expression = validation.expression ?? '';
  const field = `${path}.expression`;
  const { check, own } = scope;
  const use = { field, check, variables: namesFor(scope), resultTypes: ['bool'], own };
  return [
    ...(expression.trim() === ''
      ? [required(field, 'expression is not specified')]
      : yield* checkedExpression(expression, use)),
    ...(yield* validateMessageExpression(validation, `${path}.messageExpression`, scope)),
    ...validateMessage(validation.message ?? '', `${path}.message`),
    ...(isSupported ? [] : [notSupported(`${path}.reason`, reason, reasons)]),
  ];
}

function* validateMessageExpression(
  validation: Stored<Validation>,
  field: string,
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const expression = validation.messageExpression ?? '';
  if (expression === '') return [];
  if (expression.trim() === '') {
    return [invalid(field, expression, 'must be non-empty if specified')];
  }
  const variables = namesFor({ ...scope, authorizer: false });
  return yield* checkedExpression(expression, {
    field,
    check: scope.check,
    variables,
    resultTypes: ['string'],
    own: scope.own,
  });
}

function validateMessage(message: string, field: string): FieldError[] {
  const trimmed = message.trim();
  if (message !== '' && trimmed === '') {
    return [invalid(field, message, 'message must be non-empty if specified')];
  }
  if (!/[\n\r]/.test(trimmed)) return [];
  return [invalid(field, message, 'message must not contain line breaks')];
}

function* validateAnnotations(
  annotations: readonly Stored<AuditAnnotation>[],
  name: string,
  scope: PolicyScope,
): Generator<void, FieldError[]> {
  const path = 'spec.auditAnnotations';
  const keys = new Set<string>();
  const errors: FieldError[] = [];
  if (annotations.length > annotationsMax) {
    const detail = `must not have more than ${annotationsMax} auditAnnotations`;
    errors.push(invalidGo(path, () => goAnnotations(annotations), detail));
  }
  function* validateOne(annotation: Stored<AuditAnnotation>, index: number) {
    const at = `${path}[${index}]`;
    const key = annotation.key ?? '';
    const annotationErrors = yield* validateAnnotation(annotation, at, { name, scope });
    if (keys.has(key)) annotationErrors.push(duplicate(`${at}.key`, key));
    keys.add(key);
    return annotationErrors;
  }
  return [...errors, ...(yield* flatMapSteps(annotations, validateOne, expressionsPerStep))];
}

/** The list as Go prints it with `%#v`. */
function goAnnotations(annotations: readonly Stored<AuditAnnotation>[]): string {
  const type = 'admissionregistration.AuditAnnotation';
  const shown = goItems(annotations, (annotation) => {
    const [key, expression] = [textAt(annotation, 'key'), textAt(annotation, 'valueExpression')];
    return `${type}{Key:${JSON.stringify(key)}, ValueExpression:${JSON.stringify(expression)}}`;
  });
  return `[]${type}{${shown}}`;
}

function* validateAnnotation(
  annotation: Stored<AuditAnnotation>,
  path: string,
  { name, scope }: { name: string; scope: PolicyScope },
): Generator<void, FieldError[]> {
  const key = annotation.key ?? '';
  const written = annotation.valueExpression ?? '';
  const expression = written.trim();
  const field = `${path}.valueExpression`;
  const errors =
    name === ''
      ? [invalid(`${path}.key`, key, 'requires metadata.name be non-empty')]
      : ruleErrors(`${path}.key`, `${name}/${key}`, qualifiedName);
  if (expression === '') errors.push(required(field, 'valueExpression is not specified'));
  else if (Buffer.byteLength(expression) > valueExpressionBytesMax) {
    const detail = `must not exceed ${valueExpressionBytesMax} bytes in length`;
    errors.push(required(field, detail));
  } else {
    const resultTypes = ['string', 'null_type'];
    const { check, own } = scope;
    const use = { field, check, variables: namesFor(scope), resultTypes, own, shown: written };
    appendAll(errors, yield* checkedExpression(expression, use));
  }
  return errors;
}
