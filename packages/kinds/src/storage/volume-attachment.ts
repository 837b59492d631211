import {
  breaks,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  type JsonObject,
  required,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { validateInlineVolume } from '../core/storage/persistent-volume-rules.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { fillDrivers } from '../pod/defaults.ts';
import { driverName } from '../pod/driver-name.ts';
import type { ResourceDef } from '../resource-def.ts';
import { immutable, sortedKeys, toldTwice } from '../rules/checks.ts';
import { fillAmounts, objectAt } from '../rules/fill.ts';

const metadataBytesMax = 256 * 1024;
const messageBytesMax = 1024;
const exactlyOne = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';

function validate(object: JsonObject, dialect: Dialect): FieldError[] {
  const nodeName = textAt(object, 'spec', 'nodeName');
  return [
    ...(textAt(object, 'spec', 'attacher') === '' ? [required('spec.attacher')] : []),
    ...validateSource(object, dialect),
    ...breaks('spec.nodeName', nodeName, dnsSubdomain),
    ...validateStatus(objectAt(object, 'status')),
  ];
}

function validateSource(object: JsonObject, dialect: Dialect): FieldError[] {
  const path = 'spec.source';
  const name = at(object, 'spec', 'source', 'persistentVolumeName');
  const inline = objectAt(object, 'spec', 'source', 'inlineVolumeSpec');
  if (name === undefined && inline === undefined) return [required(path, exactlyOne)];
  if (name !== undefined && inline !== undefined) return [forbiddenField(path, exactlyOne)];
  if (inline !== undefined)
    return validateInlineVolume(inline, `${path}.inlineVolumeSpec`, dialect);
  const detail = 'must specify non empty persistentVolumeName';
  return name === '' ? [required(`${path}.persistentVolumeName`, detail)] : [];
}

function validateStatus(status: JsonObject | undefined): FieldError[] {
  const metadata = objectAt(status, 'attachmentMetadata');
  const bytes = sortedKeys(metadata).reduce(
    (sum, name) => sum + Buffer.byteLength(name) + Buffer.byteLength(textAt(metadata, name)),
    0,
  );
  const isLong = (name: string) =>
    Buffer.byteLength(textAt(status, name, 'message')) > messageBytesMax;
  return [
    ...(bytes > metadataBytesMax ? [tooLong('status.attachmentMetadata', metadataBytesMax)] : []),
    // Upstream names the other limit here.
    ...['attachError', 'detachError']
      .filter(isLong)
      .map((name) => tooLong(`status.${name}.message`, metadataBytesMax)),
  ];
}

/** What only a new object is held to. */
function validateNew(object: JsonObject): FieldError[] {
  const name = at(object, 'spec', 'source', 'persistentVolumeName');
  return [
    ...driverName(textAt(object, 'spec', 'attacher'), 'spec.attacher'),
    ...(typeof name === 'string'
      ? breaks('spec.source.persistentVolumeName', name, dnsSubdomain)
      : []),
  ];
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
        defaults: (object) => {
          const inline = objectAt(object, 'spec', 'source', 'inlineVolumeSpec');
          if (inline === undefined) return;
          fillDrivers(inline);
          fillAmounts(objectAt(inline, 'capacity'));
        },
        columns: [
          nameColumn,
          { ...text('Attacher', ['spec', 'attacher'], 'Driver that attaches it.'), format: 'name' },
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
      metadataTold: { '': ['whole', 'whole'], status: [] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      validateCreate: (_, object) => [...validate(object, dialect), ...validateNew(object)],
      validateUpdate: (_, object, old) => [
        ...toldTwice(validate(object, dialect)),
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
