import type { JsonObject } from '../../base/json.ts';
import { duplicate, type FieldError, required, tooMany } from '../../meta/field-error.ts';
import { breaks, qualifiedName } from '../../meta/names.ts';
import { textAt } from '../cells.ts';

const conditionsMax = 64;

/** Conditions under which a webhook or policy is asked at all: named, each name once. */
export function validateMatchConditions(
  conditions: readonly JsonObject[],
  path: string,
): FieldError[] {
  const names = new Set<string>();
  const errors =
    conditions.length > conditionsMax ? [tooMany(path, conditions.length, conditionsMax)] : [];
  conditions.forEach((condition, index) => {
    const at = `${path}[${index}]`;
    const name = textAt(condition, 'name');
    if (textAt(condition, 'expression').trim() === '') errors.push(required(`${at}.expression`));
    if (name === '') errors.push(required(`${at}.name`));
    else errors.push(...breaks(`${at}.name`, name, qualifiedName));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
  return errors;
}
