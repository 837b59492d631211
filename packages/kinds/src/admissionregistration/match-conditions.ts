import {
  appendAll,
  breaks,
  duplicate,
  type FieldError,
  qualifiedName,
  required,
  tooMany,
} from '@wheelhouse/machinery';
import type { MatchCondition } from '../gen/types/admissionregistration/v1alpha1.ts';
import type { Stored } from '../stored.ts';
import { checkedExpression, type ExpressionChecker, namesFor } from './expressions.ts';

const conditionsMax = 64;

/** Conditions under which a webhook or policy is asked at all: named, each name once. */
export function validateMatchConditions(
  conditions: readonly Stored<MatchCondition | MatchCondition>[],
  path: string,
  options: { readonly check?: ExpressionChecker | undefined; readonly params?: boolean } = {},
): FieldError[] {
  const variables = namesFor({ params: options.params === true });
  const names = new Set<string>();
  const errors =
    conditions.length > conditionsMax ? [tooMany(path, conditions.length, conditionsMax)] : [];
  conditions.forEach((condition, index) => {
    const at = `${path}[${index}]`;
    const name = condition.name ?? '';
    const expression = (condition.expression ?? '').trim();
    const field = `${at}.expression`;
    if (expression === '') errors.push(required(field));
    else {
      const { check } = options;
      appendAll(
        errors,
        checkedExpression(expression, { field, check, variables, wanted: ['bool'] }),
      );
    }
    if (name === '') errors.push(required(`${at}.name`));
    else appendAll(errors, breaks(`${at}.name`, name, qualifiedName));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
  return errors;
}
