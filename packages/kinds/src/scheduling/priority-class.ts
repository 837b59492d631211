import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { PriorityClass } from '../gen/types/scheduling/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import { fillAbsent } from '../rules/fill.ts';

/** PriorityClass: a name for a priority of pods. */
export function priorityClass(dialect: Dialect): ResourceDef {
  return defineKind<PriorityClass>({
    dialect,
    facts: 'scheduling',
    kind: 'PriorityClass',
    scope: 'Cluster',
    shortNames: ['pc'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillAbsent(object, { preemptionPolicy: 'PreemptLowerPriority' }),
        columns: [
          nameColumn,
          column('Value', (object) => object.value ?? 0, {
            type: 'integer',
            description: 'Value of the priority; higher values are scheduled first.',
          }),
          column('Global-Default', (object) => object.globalDefault === true, {
            type: 'boolean',
            description: 'Whether the class is the default of pods without one.',
          }),
          ageColumn,
          column('PreemptionPolicy', (object) => object.preemptionPolicy ?? '', {
            description: 'Preemption policy.',
          }),
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      // kube-apiserver never increases the generation of a class.
      prepareForCreate: (_, object) => {
        object.metadata.generation = 1;
      },
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => validateImmutable(object, old),
      undeletable: (name) =>
        systemClasses.has(name)
          ? 'this is a system priority class and cannot be deleted'
          : undefined,
    },
    example: () => ({ value: 1000 }),
  });
}

const userPriorityMax = 1_000_000_000;

function validate(object: Stored<PriorityClass>): FieldError[] {
  const errors: FieldError[] = [];
  const name = object.metadata.name ?? '';
  const value = object.value ?? 0;
  const problem = name.startsWith('system-') ? systemClassProblem(object, name) : undefined;
  if (problem !== undefined) {
    const detail = `priority class names with 'system-' prefix are reserved for system use only. error: ${problem}`;
    errors.push(forbiddenField('metadata.name', detail));
  }
  if (!name.startsWith('system-') && value > userPriorityMax) {
    const detail = `maximum allowed value of a user defined priority is ${userPriorityMax}`;
    errors.push(forbiddenField('value', detail));
  }
  const policy = object.preemptionPolicy ?? '';
  const policies = ['PreemptLowerPriority', 'Never'];
  if (policy === '') errors.push(required('preemptionPolicy'));
  else if (!policies.includes(policy)) {
    errors.push(notSupported('preemptionPolicy', policy, policies));
  }
  return errors;
}

const systemClasses = new Map([
  ['system-node-critical', 2_000_001_000],
  ['system-cluster-critical', 2_000_000_000],
]);

/** Why a class may not have a name that is reserved for the system; undefined if it may. */
function systemClassProblem(object: Stored<PriorityClass>, name: string): string | undefined {
  const value = systemClasses.get(name);
  if (value === undefined) return `${name} is not a known system priority class`;
  if ((object.value ?? 0) !== value) return `value of ${name} PriorityClass must be ${value}`;
  if (object.globalDefault !== true) return undefined;
  return `globalDefault of ${name} PriorityClass must be false`;
}

function validateImmutable(
  object: Stored<PriorityClass>,
  old: Stored<PriorityClass>,
): FieldError[] {
  const errors =
    (object.value ?? 0) === (old.value ?? 0)
      ? []
      : [forbiddenField('value', 'may not be changed in an update.')];
  const policy = 'preemptionPolicy';
  return [...errors, ...immutable(policy, object[policy], old[policy])];
}
