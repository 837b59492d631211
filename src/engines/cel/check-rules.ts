import type { JsonObject } from '../../base/json.ts';
import { type FieldError, invalid } from '../../meta/field-error.ts';
import { childPath } from '../schema/path.ts';
import type { CelRule, Schema } from '../schema/schema.ts';
import {
  compileRule,
  placesOf,
  rootName,
  rulePath,
  type SchemaPlace,
  selfSchema,
} from './rule-nodes.ts';
import { typeOfSchema } from './schema-types.ts';

/**
 * What is wrong with the rules of a structural schema, at the paths of its definition (CRD-3).
 * `blocked` tells of schemas that have other errors, whose rules are not looked at.
 */
export function checkRules(at: {
  readonly schema: Schema;
  readonly path: string;
  readonly blocked: (path: string) => boolean;
}): readonly FieldError[] {
  const errors: FieldError[] = [];
  const root = { schema: at.schema, path: at.path, name: rootName, uncorrelatable: undefined };
  for (const place of placesOf(root)) {
    const { rules = [] } = place.schema;
    if (rules.length === 0 || at.blocked(place.path)) continue;
    errors.push(...placeErrors(place, rules));
  }
  return errors;
}

function placeErrors(place: SchemaPlace, rules: readonly CelRule[]): readonly FieldError[] {
  const self = selfSchema(place.schema, place.name === rootName);
  const type = typeOfSchema(self, place.name);
  return rules.flatMap((rule, index) => {
    const path = rulePath(place.path, index);
    const made = compileRule(rule, type);
    if ('problems' in made) {
      const problems = made.problems.map(({ member, detail }) =>
        invalid(childPath(path, member), { ...rule } as JsonObject, detail),
      );
      return [...problems, ...oldSelfErrors({ rule, place, path, usesOldSelf: false })];
    }
    return oldSelfErrors({ rule, place, path, usesOldSelf: made.usesOldSelf });
  });
}

function oldSelfErrors(at: {
  rule: CelRule;
  place: SchemaPlace;
  path: string;
  usesOldSelf: boolean;
}): readonly FieldError[] {
  const { rule, place, path } = at;
  const errors: FieldError[] = [];
  if (at.usesOldSelf && place.uncorrelatable !== undefined) {
    const within = `within ${place.uncorrelatable}`;
    const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema ${within}`;
    errors.push(invalid(childPath(path, 'rule'), rule.rule, detail));
  }
  if (!at.usesOldSelf && rule.optionalOldSelf !== undefined) {
    const detail = 'may not be set if oldSelf is not used in rule';
    errors.push(invalid(childPath(path, 'optionalOldSelf'), rule.optionalOldSelf, detail));
  }
  return errors;
}
