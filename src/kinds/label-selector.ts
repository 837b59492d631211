import { type FieldError, forbiddenField, invalid, required } from '../meta/field-error.ts';
import { sortedKeys } from './checks.ts';
import { breaks, labelValue, qualifiedName } from './name-rules.ts';

/** The selector that stands in objects (`meta.v1.LabelSelector`). */
export interface LabelSelector {
  matchLabels?: { [key: string]: string };
  matchExpressions?: LabelSelectorRequirement[];
}

interface LabelSelectorRequirement {
  key: string;
  operator: string;
  values?: string[];
}

/** Judges a selector at `path`; an absent one is right. */
export function validateLabelSelector(
  selector: LabelSelector | undefined,
  path: string,
): FieldError[] {
  if (selector === undefined || selector === null) return [];
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return [
    ...sortedKeys(matchLabels).flatMap((key) => [
      ...breaks(`${path}.matchLabels`, key, qualifiedName),
      ...breaks(`${path}.matchLabels[${key}]`, matchLabels[key] ?? '', labelValue),
    ]),
    ...matchExpressions.flatMap((requirement, index) =>
      validateRequirement(requirement, `${path}.matchExpressions[${index}]`),
    ),
  ];
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

/** Whether an object's labels match; for a kind's own checks (a template against its selector). */
export function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const value = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  if (!Object.keys(matchLabels).every((key) => value(key) === matchLabels[key])) return false;
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const actual = value(key);
    if (operator === 'Exists') return actual !== undefined;
    if (operator === 'DoesNotExist') return actual === undefined;
    const listed = actual !== undefined && values.includes(actual);
    return operator === 'In' ? listed : !listed;
  });
}
