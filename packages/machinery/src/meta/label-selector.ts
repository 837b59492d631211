import { type FieldError, forbiddenField, invalid, required, tooMany } from './field-error.ts';
import { breaks, labelValue, qualifiedName } from './names.ts';
import {
  type LabelOperator,
  type LabelSelection,
  selectionOf,
  selectorTermsMax,
} from './selectors.ts';

/** The selector that stands in objects (`meta.v1.LabelSelector`). */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelSelectorRequirement[] | undefined;
}

interface LabelSelectorRequirement {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly values?: readonly string[] | undefined;
}

/** Judges a selector at `path`; an absent one is right. One above `selectorTermsMax` is not. */
export function validateLabelSelector(
  selector: LabelSelector | undefined,
  path: string,
): FieldError[] {
  if (selector === undefined || selector === null) return [];
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const terms = termsOf(selector);
  if (terms > selectorTermsMax) return [tooMany(path, terms, selectorTermsMax)];
  return [
    ...Object.keys(matchLabels)
      .sort()
      .flatMap((key) => [
        ...breaks(`${path}.matchLabels`, key, qualifiedName),
        ...breaks(`${path}.matchLabels`, matchLabels[key] ?? '', labelValue),
      ]),
    ...matchExpressions.flatMap((requirement, index) =>
      validateRequirement(requirement, `${path}.matchExpressions[${index}]`),
    ),
  ];
}

/** Requirements, and the values of those that list some: what the selectors of queries count. */
function termsOf({ matchLabels, matchExpressions }: LabelSelector): number {
  let terms = Object.keys(matchLabels ?? {}).length;
  for (const { values } of matchExpressions ?? []) terms += 1 + (values?.length ?? 0);
  return terms;
}

function validateRequirement(requirement: LabelSelectorRequirement, path: string): FieldError[] {
  const { key, operator, values = [] } = requirement;
  const errors: FieldError[] = [];
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        const detail = "must be specified when `operator` is 'In' or 'NotIn'";
        errors.push(required(`${path}.values`, detail));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        errors.push(forbiddenField(`${path}.values`, detail));
      }
      break;
    default:
      errors.push(invalid(`${path}.operator`, operator ?? '', 'not a valid selector operator'));
  }
  return [
    ...errors,
    ...breaks(`${path}.key`, key ?? '', qualifiedName),
    ...values.flatMap((value, index) => breaks(`${path}.values[${index}]`, value, labelValue)),
  ];
}

/** A selector that selects everything: neither labels nor expressions. */
export function isEmptySelector(selector: LabelSelector | undefined): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

const operators: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/**
 * The predicate of a valid selector. An empty one selects everything; whether an absent one selects
 * everything or nothing is each field's own affair, so that is the caller's to say.
 */
export function compileLabelSelector(selector: LabelSelector): LabelSelection {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return selectionOf([
    ...Object.entries(matchLabels).map(([key, value]) => ({
      key,
      operator: '=' as const,
      values: [value],
    })),
    ...matchExpressions.flatMap(({ key = '', operator = '', values = [] }) => {
      const selectionOperator = Object.hasOwn(operators, operator)
        ? operators[operator]
        : undefined;
      return selectionOperator === undefined ? [] : [{ key, operator: selectionOperator, values }];
    }),
  ]);
}

/** Whether an object's labels match; an absent selector selects everything. */
export function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  return compileLabelSelector(selector ?? {}).matches(labels);
}
