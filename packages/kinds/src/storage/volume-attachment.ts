import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  required,
  ruleErrors,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { validateInlineVolume } from '../core/storage/persistent-volume-rules.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { VolumeAttachment, VolumeAttachmentStatus } from '../gen/types/storage/v1.ts';
import { fillDrivers } from '../pod/defaults.ts';
import { validateDriverName } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { immutable, mapBytes, reportedTwice } from '../rules/checks.ts';
import { roundAmounts } from '../rules/fill.ts';

/** VolumeAttachment: a request to attach a volume to a node. */
export function volumeAttachment(dialect: Dialect): ResourceDef {
  const text = (name: string, path: readonly string[], description: string) =>
    column(name, (object) => textAt(object, ...path), { description });
  return defineKind<VolumeAttachment>({
    dialect,
    facts: 'storage',
    kind: 'VolumeAttachment',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: (object) => {
          const inline = object.spec?.source?.inlineVolumeSpec;
          if (inline === undefined) return;
          fillDrivers(inline);
          roundAmounts(inline.capacity);
        },
        columns: [
          nameColumn,
          {
            ...text('Attacher', ['spec', 'attacher'], 'Driver that attaches the volume.'),
            format: 'name',
          },
          text('PV', ['spec', 'source', 'persistentVolumeName'], 'Volume to attach.'),
          text('Node', ['spec', 'nodeName'], 'Node to attach the volume to.'),
          column('Attached', (object) => object.status?.attached === true, {
            type: 'boolean',
            description: 'Whether the volume is attached.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'whole'], status: [] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      *validateCreate(_, object) {
        return [...(yield* validate(object, dialect)), ...validateNew(object)];
      },
      *validateUpdate(_, object, old) {
        const errors = reportedTwice(yield* validate(object, dialect));
        yield;
        return [...errors, ...immutable('spec', object.spec, old.spec)];
      },
      allowUnconditionalUpdate: false,
      deleteAnswers: 'object',
    },
    subresources: [statusSubresource],
    example: () => ({
      spec: {
        attacher: 'driver.example.com',
        nodeName: 'node-1',
        source: { persistentVolumeName: 'example' },
      },
    }),
  });
}

function* validate(
  object: Stored<VolumeAttachment>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const nodeName = object.spec?.nodeName ?? '';
  return [
    ...((object.spec?.attacher ?? '') === '' ? [required('spec.attacher')] : []),
    ...(yield* validateSource(object, dialect)),
    ...ruleErrors('spec.nodeName', nodeName, dnsSubdomain),
    ...validateStatus(object.status),
  ];
}

const exactlyOne = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';

function* validateSource(
  object: Stored<VolumeAttachment>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const path = 'spec.source';
  const name = object.spec?.source?.persistentVolumeName;
  const inline = object.spec?.source?.inlineVolumeSpec;
  if (name === undefined && inline === undefined) return [required(path, exactlyOne)];
  if (name !== undefined && inline !== undefined) return [forbiddenField(path, exactlyOne)];
  if (inline !== undefined) {
    return yield* validateInlineVolume(inline, `${path}.inlineVolumeSpec`, dialect);
  }
  const detail = 'must specify non empty persistentVolumeName';
  return name === '' ? [required(`${path}.persistentVolumeName`, detail)] : [];
}

const messageBytesMax = 1024;

const metadataBytesMax = 256 * 1024;

function validateStatus(status: Stored<VolumeAttachmentStatus> | undefined): FieldError[] {
  const metadata = status?.attachmentMetadata;
  const isMetadataLong = mapBytes(metadata) > metadataBytesMax;
  const isLong = (name: string) =>
    Buffer.byteLength(textAt(status, name, 'message')) > messageBytesMax;
  return [
    ...(isMetadataLong ? [tooLong('status.attachmentMetadata', metadataBytesMax)] : []),
    // kube-apiserver states the other limit in this message.
    ...['attachError', 'detachError']
      .filter(isLong)
      .map((name) => tooLong(`status.${name}.message`, metadataBytesMax)),
  ];
}

/** Validates what is validated only for a new object. */
function validateNew(object: Stored<VolumeAttachment>): FieldError[] {
  const name = object.spec?.source?.persistentVolumeName;
  return [
    ...validateDriverName(object.spec?.attacher ?? '', 'spec.attacher'),
    ...(typeof name === 'string'
      ? ruleErrors('spec.source.persistentVolumeName', name, dnsSubdomain)
      : []),
  ];
}
