import { textAt } from '@wheelhouse/kinds';
import {
  appendAll,
  type FieldError,
  type FieldRequirement,
  forbiddenField,
  invalid,
  isObject,
  type JsonObject,
  type LabelOperator,
  type LabelRequirement,
  labelValue,
  member,
  objectsOf,
  parseFieldSelector,
  parseLabelSelector,
  qualifiedName,
  required,
  ruleErrors,
  selectorTermsMax,
  stringsOf,
  tooMany,
} from '@wheelhouse/machinery';
import type { Attributes } from '../../registry/permit.ts';

/**
 * The selectors of a review's resource attributes (AUTHZ-8), and errors of omitted requirements.
 */
interface ReviewSelectors {
  readonly attributes: Pick<Attributes, 'fieldSelector' | 'labelSelector'>;
  /** For the status, in kube-apiserver's wording. */
  readonly problems: readonly string[];
}

type Which = 'fieldSelector' | 'labelSelector';

/** Errors in the selectors; unknown operators are accepted, for newer clients. */
export function validateReviewSelectors(resource: JsonObject): FieldError[] {
  return [...validate(resource, 'fieldSelector'), ...validate(resource, 'labelSelector')];
}

function validate(resource: JsonObject, which: Which): FieldError[] {
  const selector = member(resource, which);
  if (!isObject(selector)) return [];
  const path = `spec.resourceAttributes.${which}`;
  const raw = textAt(selector, 'rawSelector');
  const requirements = requirementsOf(selector);
  const terms = requirements.reduce(
    (sum, requirement) => sum + 1 + valuesOf(requirement).length,
    0,
  );
  if (terms > selectorTermsMax) {
    return [tooMany(`${path}.requirements`, terms, selectorTermsMax)];
  }
  const errors: FieldError[] = [];
  if (raw !== '' && requirements.length > 0) {
    const why = 'may not specified at the same time as requirements';
    errors.push(invalid(`${path}.rawSelector`, raw, why));
  }
  if (raw === '' && requirements.length === 0) {
    const why = `when ${path} is specified, requirements or rawSelector is required`;
    errors.push(required(`${path}.requirements`, why));
  }
  for (const [index, requirement] of requirements.entries()) {
    appendAll(
      errors,
      validateRequirement(requirement, { which, at: `${path}.requirements[${index}]` }),
    );
  }
  return errors;
}

function validateRequirement(
  requirement: JsonObject,
  { which, at }: { readonly which: Which; readonly at: string },
): FieldError[] {
  const key = textAt(requirement, 'key');
  const operator = textAt(requirement, 'operator');
  const values = valuesOf(requirement);
  const errors: FieldError[] = [];
  if (which === 'fieldSelector' && key === '')
    errors.push(required(`${at}.key`, 'must be specified'));
  if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
    const why = "must be specified when `operator` is 'In' or 'NotIn'";
    errors.push(required(`${at}.values`, why));
  }
  if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) {
    const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    errors.push(forbiddenField(`${at}.values`, why));
  }
  if (which === 'fieldSelector') return errors;
  return [
    ...errors,
    ...ruleErrors(`${at}.key`, key, qualifiedName),
    ...values.flatMap((value, index) => ruleErrors(`${at}.values[${index}]`, value, labelValue)),
  ];
}

/** The selectors for authorizers; omitting an unreadable requirement only widens the question. */
export function reviewSelectors(resource: JsonObject): ReviewSelectors {
  const fields = read(resource, {
    which: 'fieldSelector',
    parse: parseFieldSelector,
    convert: fieldRequirement,
  });
  const labels = read(resource, {
    which: 'labelSelector',
    parse: (text) => parseLabelSelector(text).requirements,
    convert: labelRequirement,
  });
  return {
    attributes: {
      ...(fields.found.length === 0 ? {} : { fieldSelector: fields.found }),
      ...(labels.found.length === 0 ? {} : { labelSelector: labels.found }),
    },
    problems: [...fields.problems, ...labels.problems],
  };
}

function read<Requirement>(
  resource: JsonObject,
  as: {
    readonly which: Which;
    readonly parse: (text: string) => readonly Requirement[];
    readonly convert: (requirement: JsonObject) => Requirement | undefined;
  },
): { readonly found: readonly Requirement[]; readonly problems: readonly string[] } {
  const selector = member(resource, as.which);
  if (!isObject(selector)) return { found: [], problems: [] };
  const ignored = `spec.resourceAttributes.${as.which} ignored due to parse error`;
  const raw = textAt(selector, 'rawSelector');
  if (raw !== '') {
    try {
      return { found: as.parse(raw), problems: [] };
    } catch {
      return { found: [], problems: [ignored] };
    }
  }
  const requirements = requirementsOf(selector);
  const converted = requirements.flatMap((requirement) => as.convert(requirement) ?? []);
  if (converted.length === requirements.length) return { found: converted, problems: [] };
  const problem =
    converted.length === 0 ? ignored : ignored.replace('ignored', 'partially ignored');
  return { found: converted, problems: [problem] };
}

/** Field requirements, which support only one value each. */
function fieldRequirement(requirement: JsonObject): FieldRequirement | undefined {
  const operator = textAt(requirement, 'operator');
  const [value, ...more] = valuesOf(requirement);
  if (value === undefined || more.length > 0) return undefined;
  if (operator !== 'In' && operator !== 'NotIn') return undefined;
  return { label: textAt(requirement, 'key'), operator: operator === 'In' ? '=' : '!=', value };
}

const operators: ReadonlyMap<string, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

function labelRequirement(requirement: JsonObject): LabelRequirement | undefined {
  const operator = operators.get(textAt(requirement, 'operator'));
  if (operator === undefined) return undefined;
  return { key: textAt(requirement, 'key'), operator, values: valuesOf(requirement) };
}

const requirementsOf = (selector: JsonObject) => objectsOf(member(selector, 'requirements'));

const valuesOf = (requirement: JsonObject) => stringsOf(member(requirement, 'values'));
