import {
  type Dialect,
  dnsLabel,
  type FieldError,
  invalid,
  qualifiedName,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { Namespace } from '../gen/types/core/v1.ts';
import type { ResourceDef, Stored, StrategyContext } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';
import { ensure, fill } from '../rules/fill.ts';

/**
 * Namespace. A deletion marks it Terminating; the namespace controller removes its contents and
 * then its `spec.finalizers`, after which it is removed (DEL-4).
 */
export function namespace(dialect: Dialect): ResourceDef {
  return defineKind<Namespace>({
    dialect,
    facts: 'core',
    kind: 'Namespace',
    scope: 'Cluster',
    shortNames: ['ns'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => {
          setNameLabel(object, dialect);
          fill(ensure(object, 'status'), { phase: 'Active' });
        },
        columns: [
          nameColumn,
          column('Status', (object) => object.status?.phase ?? '', {
            description: 'Active, or Terminating.',
          }),
          ageColumn,
        ],
      },
    ],
    storage: { fieldsOf: (object) => ({ 'status.phase': object.status?.phase ?? '' }) },
    subresources: [{ name: 'finalize', verbs: ['update'] }, statusSubresource],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsLabel,
      prepareForCreate: (_, object) => prepareForCreate(object, dialect),
      afterNaming: (object) => setNameLabel(object, dialect),
      prepareForUpdate,
      validateCreate: (_, object) => validateFinalizers(object, dialect, () => 'spec.finalizers'),
      validateUpdate: (context, object) => {
        if (context.subresource === 'status') return validateStatus(object);
        if (context.subresource === 'finalize')
          return validateFinalizers(object, dialect, finalizerAt);
        return [];
      },
      hasStatus: true,
      resetFields: { '': ['status'], status: ['spec'], finalize: ['status'] },
      deleteAnswers: 'object',
      beforeDelete,
      mayRemove: isFinalized,
    },
    example: () => ({}),
  });
}

/** Sets the label with the namespace's name, which selectors can match. */
function setNameLabel(object: Stored<Namespace>, dialect: Dialect): void {
  const { metadata } = object;
  if (metadata.name === undefined || metadata.name === '') return;
  metadata.labels = { ...metadata.labels, [dialect.label('metadata.name')]: metadata.name };
}

function prepareForCreate(object: Stored<Namespace>, dialect: Dialect): void {
  object.status = { phase: 'Active' };
  const finalizers = object.spec?.finalizers ?? [];
  const own = dialect.productName;
  object.spec = {
    ...object.spec,
    finalizers: finalizers.includes(own) ? finalizers : [...finalizers, own],
  };
}

/** Restores the spec, which only `finalize` changes. */
function prepareForUpdate(
  context: StrategyContext,
  object: Stored<Namespace>,
  old: Stored<Namespace>,
): void {
  if (context.subresource === 'finalize') return;
  if (old.spec === undefined) delete object.spec;
  else object.spec = old.spec;
}

/** Marks a Namespace; later deletions change nothing until it has no `spec.finalizers`. */
function beforeDelete(_: StrategyContext, object: Stored<Namespace>) {
  if (object.metadata.deletionTimestamp === undefined) {
    object.status = { ...object.status, phase: 'Terminating' };
    return 'finalize';
  }
  return isFinalized(object) ? 'proceed' : 'marked';
}

const isFinalized = (object: Stored<Namespace>) => (object.spec?.finalizers ?? []).length === 0;

const garbageCollectorFinalizers = new Set(['orphan', 'foregroundDeletion']);

function validateFinalizers(
  object: Stored<Namespace>,
  dialect: Dialect,
  fieldOf: (index: number) => string,
): Generator<void, FieldError[]> {
  const detail = 'name is neither a standard finalizer name nor is it fully qualified';
  return flatMapSteps(object.spec?.finalizers ?? [], (name, index) => {
    const field = fieldOf(index);
    const broken = ruleErrors(field, name, qualifiedName);
    const standard = name === dialect.productName || garbageCollectorFinalizers.has(name);
    if (name.includes('/') || standard) return broken;
    return [...broken, invalid(field, name, detail)];
  });
}

function validateStatus(object: Stored<Namespace>): FieldError[] {
  const deleting = object.metadata.deletionTimestamp !== undefined;
  const phase = object.status?.phase ?? '';
  // kube-apiserver capitalizes the field's name.
  const field = 'status.Phase';
  if (deleting && phase !== 'Terminating') {
    const detail = "may only be 'Terminating' if `deletionTimestamp` is not empty";
    return [invalid(field, phase, detail)];
  }
  if (!deleting && phase !== 'Active') {
    return [invalid(field, phase, "may only be 'Active' if `deletionTimestamp` is empty")];
  }
  return [];
}

const finalizerAt = (index: number) => `spec.finalizers[${index}]`;
