import {
  type Dialect,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn, numberAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type {
  ExemptPriorityLevelConfiguration,
  LimitedPriorityLevelConfiguration,
  LimitResponse,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
  QueuingConfiguration,
} from '../gen/types/flowcontrol/v1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { ensure, fill } from '../rules/fill.ts';
import { validateMandatory } from './default-objects.ts';
import { flowStrategy, validateFlowConditions } from './flow-schema.ts';

/** PriorityLevelConfiguration: the concurrency and queues of a class of requests (OPS-3). */
export function priorityLevelConfiguration(dialect: Dialect): ResourceDef {
  const queuing = (name: string, member: string, description: string) =>
    limitColumn(name, ['limitResponse', 'queuing', member], description);
  return defineKind<PriorityLevelConfiguration>({
    dialect,
    facts: 'flowcontrol',
    kind: 'PriorityLevelConfiguration',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          column('Type', (object) => object.spec?.type ?? '', {
            description: 'Exempt or Limited.',
          }),
          limitColumn(
            'NominalConcurrencyShares',
            ['nominalConcurrencyShares'],
            "Nominal share of the server's concurrency.",
          ),
          queuing('Queues', 'queues', 'Number of queues.'),
          queuing('HandSize', 'handSize', 'Number of queues that a flow may use.'),
          queuing('QueueLengthLimit', 'queueLengthLimit', 'Maximum number of requests in a queue.'),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: flowStrategy((object) => validatePriorityLevel(object, dialect)),
    subresources: [statusSubresource],
    example: () => ({
      spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
    }),
  });
}

const limitColumn = (name: string, path: readonly string[], description: string) =>
  column(name, (object) => at(object, 'spec', 'limited', ...path) ?? '<none>', { description });

/** Concurrency shares of a limited level that states none. */
export const defaultShares = 30;

/** The annotation of `v1beta3` that tells its clients that zero shares are intended. */
export const zeroSharesAnnotation = (dialect: Dialect) =>
  `flowcontrol.${dialect.groupLabel('v1beta3-preserve-zero-concurrency-shares')}`;

function fillDefaults(object: Stored<PriorityLevelConfiguration>): void {
  fill(ensure(object, 'spec').limited, { nominalConcurrencyShares: defaultShares });
  fillLevel(object);
}

/** Fills in the defaults of a level, except the shares of a limited one. */
export function fillLevel(object: Stored<PriorityLevelConfiguration>): void {
  const { exempt, limited } = object.spec ?? {};
  fill(exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
  fill(limited, { lendablePercent: 0 });
  const queuing = limited?.limitResponse?.queuing;
  if (queuing === undefined) return;
  queuing.queues ||= 64;
  queuing.handSize ||= 8;
  queuing.queueLengthLimit ||= 50;
}

/** Validates a PriorityLevelConfiguration except its metadata. */
function validatePriorityLevel(
  object: Stored<PriorityLevelConfiguration>,
  dialect: Dialect,
): FieldError[] {
  const spec = object.spec ?? {};
  const type = spec.type ?? '';
  const isExempt = (object.metadata.name ?? '') === 'exempt';
  const errors: FieldError[] = [];
  const key = zeroSharesAnnotation(dialect);
  if (object.metadata.annotations?.[key] !== undefined) {
    errors.push(forbiddenField('metadata.annotations', `annotation '${key}' is forbidden`));
  }
  if (isExempt !== (type === 'Exempt')) {
    const detail = "type must be 'Exempt' if and only if name is 'exempt'";
    errors.push(invalid('spec.type', type, detail));
  }
  return [
    ...errors,
    ...validateType(spec, type),
    ...validateMandatory(object, { dialect, kind: 'PriorityLevelConfiguration' }),
    ...validateFlowConditions(object),
  ];
}

function validateType(spec: Stored<PriorityLevelConfigurationSpec>, type: string): FieldError[] {
  const [exempt, limited] = [spec.exempt, spec.limited];
  switch (type) {
    case 'Exempt': {
      const refused = forbiddenField('spec.limited', 'must be nil if the type is not Limited');
      return [
        ...(limited === undefined ? [] : [refused]),
        ...(exempt === undefined ? [] : validateShares(exempt, 'spec.exempt')),
      ];
    }
    case 'Limited': {
      const refused = forbiddenField('spec.exempt', 'must be nil if the type is Limited');
      const missing = required('spec.limited', 'must not be empty when type is Limited');
      return [
        ...(exempt === undefined ? [] : [refused]),
        ...(limited === undefined ? [missing] : validateLimited(limited)),
      ];
    }
    default:
      return [notSupported('spec.type', type, ['Exempt', 'Limited'])];
  }
}

function validateShares(
  level: Stored<ExemptPriorityLevelConfiguration>,
  path: string,
): FieldError[] {
  return [...validateNominal(level, path), ...validateLendable(level, path)];
}

function validateNominal(
  level: Stored<ExemptPriorityLevelConfiguration | LimitedPriorityLevelConfiguration>,
  path: string,
): FieldError[] {
  const shares = level.nominalConcurrencyShares ?? 0;
  if (shares >= 0) return [];
  const detail = 'must be a non-negative integer';
  return [invalid(`${path}.nominalConcurrencyShares`, shares, detail)];
}

function validateLendable(
  level: Stored<ExemptPriorityLevelConfiguration | LimitedPriorityLevelConfiguration>,
  path: string,
): FieldError[] {
  const percent = level.lendablePercent ?? 0;
  if (percent >= 0 && percent <= 100) return [];
  return [invalid(`${path}.lendablePercent`, percent, 'must be between 0 and 100, inclusive')];
}

function validateLimited(level: Stored<LimitedPriorityLevelConfiguration>): FieldError[] {
  const path = 'spec.limited';
  const borrowing = level.borrowingLimitPercent ?? 0;
  const detail = 'if specified, must be a non-negative integer';
  return [
    ...validateNominal(level, path),
    ...validateResponse(level.limitResponse ?? {}, `${path}.limitResponse`),
    ...validateLendable(level, path),
    ...(borrowing < 0 ? [invalid(`${path}.borrowingLimitPercent`, borrowing, detail)] : []),
  ];
}

function validateResponse(response: Stored<LimitResponse>, path: string): FieldError[] {
  const type = response.type ?? '';
  const queuing = response.queuing;
  const field = `${path}.queuing`;
  if (type === 'Queue') {
    const detail = 'must not be empty if limited.limitResponse.type is Limited';
    return queuing === undefined ? [required(field, detail)] : validateQueuing(queuing, field);
  }
  if (type !== 'Reject') return [notSupported(`${path}.type`, type, ['Queue', 'Reject'])];
  if (response.queuing === undefined) return [];
  const detail = 'must be nil if limited.limitResponse.type is not Limited';
  return [forbiddenField(field, detail)];
}

const queuesMax = 10_000_000;

/** Bits of the hash that assigns requests to queues. */
const hashBits = 60;

function validateQueuing(queuing: Stored<QueuingConfiguration>, path: string): FieldError[] {
  const count = (name: string) => numberAt(queuing, name);
  const [length, queues, hand] = [count('queueLengthLimit'), count('queues'), count('handSize')];
  const errors: FieldError[] = [];
  const refuse = (name: string, detail: string) =>
    errors.push(invalid(`${path}.${name}`, count(name), detail));
  if (length <= 0) refuse('queueLengthLimit', 'must be positive');
  if (queues <= 0) refuse('queues', 'must be positive');
  else if (queues > queuesMax) refuse('queues', `must not be greater than ${queuesMax}`);
  if (hand <= 0) refuse('handSize', 'must be positive');
  else if (hand > queues) refuse('handSize', `should not be greater than queues (${queues})`);
  else if (Math.ceil(Math.log2(queues) * hand) > hashBits) {
    const size = `deckSize ${queues} and handSize ${hand}`;
    refuse('handSize', `required entropy bits of ${size} should not be greater than ${hashBits}`);
  }
  return errors;
}
