import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, notSupported, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { ensure, objectsAt } from '../fill.ts';

const precedenceMax = 10000;

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  if (numberAt(spec, 'matchingPrecedence') === 0) spec['matchingPrecedence'] = 1000;
}

function validate(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const precedence = numberAt(object, 'spec', 'matchingPrecedence');
  if (precedence <= 0) {
    const detail = 'must be a positive value';
    errors.push(invalid('spec.matchingPrecedence', precedence, detail));
  }
  if (precedence > precedenceMax) {
    const detail = `must not be greater than ${precedenceMax}`;
    errors.push(invalid('spec.matchingPrecedence', precedence, detail));
  }
  const method = at(object, 'spec', 'distinguisherMethod');
  const type = textAt(method, 'type');
  const types = ['ByNamespace', 'ByUser'];
  if (method !== undefined && !types.includes(type)) {
    errors.push(notSupported('spec.distinguisherMethod', type, types));
  }
  if (textAt(object, 'spec', 'priorityLevelConfiguration', 'name') === '') {
    const detail = 'must reference a priority level';
    errors.push(required('spec.priorityLevelConfiguration.name', detail));
  }
  return errors;
}

function missing(object: JsonObject): string {
  const dangling = objectsAt(object, 'status', 'conditions').find(
    (one) => textAt(one, 'type') === 'Dangling',
  );
  return textAt(dangling, 'status') || '?';
}

/** FlowSchema: which requests belong to which priority level (OPS-3). */
export function flowSchema(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'flowcontrol',
    kind: 'FlowSchema',
    resource: 'flowschemas',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          column(
            'PriorityLevel',
            (object) => textAt(object, 'spec', 'priorityLevelConfiguration', 'name'),
            { description: 'Level of the requests.' },
          ),
          column('MatchingPrecedence', (object) => numberAt(object, 'spec', 'matchingPrecedence'), {
            type: 'integer',
            description: 'Lower is tried first.',
          }),
          column(
            'DistinguisherMethod',
            (object) => textAt(object, 'spec', 'distinguisherMethod', 'type') || '<none>',
            { description: 'How flows are told apart.' },
          ),
          ageColumn,
          column('MissingPL', missing, { description: 'Whether the level is missing.' }),
        ],
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? [] : validate(object),
      allowUnconditionalUpdate: false,
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: `${dialect.group('flowcontrol.apiserver')}/v1`,
      kind: 'FlowSchema',
      metadata: { name: 'example' },
      spec: { priorityLevelConfiguration: { name: 'example' } },
    }),
  });
}
