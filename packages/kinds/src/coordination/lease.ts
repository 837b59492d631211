import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  qualifiedName,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Lease } from '../gen/types/coordination/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';

/** Lease: an expiring lock, which its holder renews periodically. */
export function lease(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const holderColumn = column('Holder', (object) => textAt(object, 'spec', 'holderIdentity'), {
    description: 'Identity of the holder.',
  });
  return defineKind<Lease>({
    dialect,
    features,
    facts: 'coordination',
    kind: 'Lease',
    scope: 'Namespaced',
    versions: [{ version: 'v1', columns: [nameColumn, holderColumn, ageColumn] }],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
      allowCreateOnUpdate: true,
      allowUnconditionalUpdate: false,
    },
    example: () => ({
      spec: {
        holderIdentity: 'worker-1',
        leaseDurationSeconds: 15,
        renewTime: '2030-01-01T00:00:00.000000Z',
      },
    }),
  });
}

function validate(object: Stored<Lease>): FieldError[] {
  const { leaseDurationSeconds = 1, leaseTransitions = 0 } = object.spec ?? {};
  const errors: FieldError[] = [];
  if (leaseDurationSeconds <= 0) {
    const field = 'spec.leaseDurationSeconds';
    errors.push(invalid(field, leaseDurationSeconds, 'must be greater than 0'));
  }
  if (leaseTransitions < 0) {
    const field = 'spec.leaseTransitions';
    errors.push(invalid(field, leaseTransitions, 'must be greater than or equal to 0'));
  }
  const { strategy, preferredHolder = '' } = object.spec ?? {};
  if (strategy !== undefined) appendAll(errors, validateLeaseStrategy(strategy));
  if (preferredHolder !== '' && (strategy ?? '') === '') {
    const detail = 'may only be specified if `strategy` is defined';
    errors.push(forbiddenField('spec.preferredHolder', detail));
  }
  return errors;
}

/** The strategy that elects the candidate with the oldest emulated release. */
export const oldestEmulationVersion = 'OldestEmulationVersion';

/** Validates the strategy of a Lease or LeaseCandidate: a standard one or a qualified name. */
export function validateLeaseStrategy(strategy: string): FieldError[] {
  // kube-apiserver appends the member's name twice.
  const field = 'spec.strategy.strategy';
  if (strategy.includes('/')) return ruleErrors(field, strategy, qualifiedName);
  if (strategy === oldestEmulationVersion) return [];
  return [notSupported(field, strategy, [oldestEmulationVersion])];
}
