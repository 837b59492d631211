import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { duplicate, type FieldError, forbiddenField } from '../../meta/field-error.ts';
import { breaks, dnsSubdomain, qualifiedName } from '../../meta/names.ts';
import { createdAtColumn, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { ensure, fill, objectAt, objectsAt } from '../fill.ts';

/** A container's default limit is its maximum, its default request the limit or the minimum. */
function fillDefaults(object: JsonObject): void {
  for (const limit of objectsAt(object, 'spec', 'limits')) {
    if (limit['type'] !== 'Container') continue;
    fill(ensure(limit, 'default'), { ...objectAt(limit, 'max') });
    fill(ensure(limit, 'defaultRequest'), { ...objectAt(limit, 'default') });
    fill(ensure(limit, 'defaultRequest'), { ...objectAt(limit, 'min') });
  }
}

function validate(object: JsonObject): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(object, 'spec', 'limits').flatMap((limit, index) => {
    const path = `spec.limits[${index}]`;
    const type = textAt(limit, 'type');
    const errors = breaks(`${path}.type`, type, qualifiedName);
    if (seen.has(type)) errors.push(duplicate(`${path}.type`, type));
    seen.add(type);
    if (type !== 'Pod') return errors;
    for (const name of ['default', 'defaultRequest']) {
      if (objectAt(limit, name) === undefined) continue;
      const detail = "may not be specified when `type` is 'Pod'";
      errors.push(forbiddenField(`${path}.${name}`, detail));
    }
    return errors;
  });
}

/** LimitRange: bounds and defaults for what pods of a namespace may ask for. */
export function limitRange(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'LimitRange',
    resource: 'limitranges',
    scope: 'Namespaced',
    shortNames: ['limits'],
    versions: [{ version: 'v1', defaults: fillDefaults, columns: [nameColumn, createdAtColumn] }],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'example', namespace: 'default' },
      spec: { limits: [{ type: 'Container', max: { cpu: '2' } }] },
    }),
  });
}
