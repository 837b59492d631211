import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { immutable } from '../checks.ts';
import { defineKind, statusSubresource } from '../define.ts';

function validate(object: JsonObject): FieldError[] {
  const errors = ['attacher', 'nodeName']
    .filter((name) => textAt(object, 'spec', name) === '')
    .map((name) => required(`spec.${name}`));
  const source = at(object, 'spec', 'source');
  const named = textAt(source, 'persistentVolumeName') !== '';
  if (!named && at(source, 'inlineVolumeSpec') === undefined) {
    const detail = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
    errors.push(required('spec.source', detail));
  }
  return errors;
}

/** VolumeAttachment: the wish that a volume be attached to a node. */
export function volumeAttachment(dialect: Dialect): ResourceDef {
  const text = (name: string, path: readonly string[], description: string) =>
    column(name, (object) => textAt(object, ...path), { description });
  return defineKind({
    dialect,
    facts: 'storage',
    kind: 'VolumeAttachment',
    resource: 'volumeattachments',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          text('Attacher', ['spec', 'attacher'], 'Driver that attaches it.'),
          text('PV', ['spec', 'source', 'persistentVolumeName'], 'The volume.'),
          text('Node', ['spec', 'nodeName'], 'The node.'),
          column('Attached', (object) => at(object, 'status', 'attached') === true, {
            type: 'boolean',
            description: 'Whether it is.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...validate(object),
        ...immutable('spec', at(object, 'spec'), at(old, 'spec')),
      ],
      allowUnconditionalUpdate: false,
      deleteAnswers: 'object',
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: `${dialect.group('storage')}/v1`,
      kind: 'VolumeAttachment',
      metadata: { name: 'example' },
      spec: {
        attacher: 'driver.example.com',
        nodeName: 'node-1',
        source: { persistentVolumeName: 'example' },
      },
    }),
  });
}
