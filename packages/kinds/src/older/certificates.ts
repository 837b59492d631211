import type { Dialect, FieldError, JsonObject } from '@wheelhouse/machinery';
import { at, listAt, textAt } from '../cells.ts';
import { requestedNames } from '../certificates/certificate-request.ts';
import type { Strategy } from '../resource-def.ts';
import { errorSteps } from '../rules/checks.ts';
import { ensure, fill, objectsAt } from '../rules/fill.ts';
import type { OlderKind } from './contract.ts';

const defaultUsages = ['digital signature', 'key encipherment'];

/** CertificateSigningRequest `v1beta1`, which has fewer rules and a default signer. */
export function olderCertificates(dialect: Dialect): readonly OlderKind[] {
  const legacySigner = dialect.label('legacy-unknown');
  const rules = (strategy: Strategy): Partial<Strategy> => ({
    *validateCreate(context, object) {
      const errors = yield* errorSteps(strategy.validateCreate?.(context, object));
      return lenient(errors, legacySigner);
    },
    *validateUpdate(context, object, old) {
      const errors = yield* errorSteps(strategy.validateUpdate?.(context, object, old));
      return lenient(errors, legacySigner);
    },
  });
  return [
    {
      facts: 'certificates',
      kind: 'CertificateSigningRequest',
      older: [
        {
          facts: 'certificates',
          version: 'v1beta1',
          rules,
          defaults(object) {
            const spec = ensure(object, 'spec');
            if (at(spec, 'usages') === undefined) spec['usages'] = [...defaultUsages];
            if (textAt(spec, 'signerName') === '') spec['signerName'] = signerOf(object, dialect);
            for (const condition of objectsAt(object, 'status', 'conditions')) {
              fill(condition, { status: 'True' });
            }
          },
        },
      ],
    },
  ];
}

/** Removes the errors of rules that `v1beta1` does not have. */
function lenient(errors: readonly FieldError[], legacySigner: string): readonly FieldError[] {
  return errors.filter(({ type, field, message }) => {
    if (/^spec\.usages(\[|$)/.test(field)) return false;
    if (field === 'spec.signerName' && message.includes(legacySigner)) return false;
    return !(field.startsWith('status.conditions[') && type !== 'FieldValueRequired');
  });
}

const nodeGroup = 'system:nodes';
const nodePrefix = 'system:node:';

/**
 * The default signer, which depends on whether the subject and the usages are those of a kubelet.
 */
function signerOf(object: JsonObject, dialect: Dialect): string {
  const unknown = dialect.label('legacy-unknown');
  const pem = Buffer.from(textAt(object, 'spec', 'request'), 'base64');
  const names = requestedNames(pem);
  if (names === undefined) return unknown;
  const isNode =
    names.organizations.join() === nodeGroup && names.commonName.startsWith(nodePrefix);
  if (!isNode) return unknown;
  if (!names.hasAlternatives && hasUsages(object, 'client auth')) {
    return dialect.label('kube-apiserver-client-kubelet');
  }
  const serves = names.hasAlternatives && hasUsages(object, 'server auth');
  return serves ? dialect.label('kubelet-serving') : unknown;
}

/** Whether the usages are `digital signature`, `kind`, and possibly `key encipherment`. */
function hasUsages(object: JsonObject, kind: string): boolean {
  const usages = new Set(listAt(object, 'spec', 'usages'));
  usages.delete('key encipherment');
  return usages.size === 2 && usages.has('digital signature') && usages.has(kind);
}
