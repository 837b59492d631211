import {
  appendAll,
  breaks,
  duplicate,
  type FieldError,
  invalid,
  type JsonObject,
  notSupported,
  qualifiedName,
  required,
  tooLong,
} from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { Condition } from '../gen/types/meta/v1.ts';
import type { Stored } from '../stored.ts';

const statuses = ['False', 'True', 'Unknown'];
const reasonBytesMax = 1024;
const messageBytesMax = 32 * 1024;

const reasonForm = '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?';
const reasonDetail =
  'a condition reason must start with alphabetic character, optionally followed by a string of ' +
  "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. " +
  "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex " +
  `used for validation is '${reasonForm}')`;

/** Conditions of the common form, each type once (`meta.v1.Condition`). */
export function validateConditions(conditions: readonly JsonObject[], path: string): FieldError[] {
  const types = new Set<string>();
  return conditions.flatMap((condition, index) => {
    const type = textAt(condition, 'type');
    const at = `${path}[${index}]`;
    const repeated = types.has(type) ? [duplicate(`${at}.type`, type)] : [];
    types.add(type);
    return [...repeated, ...validateCondition(condition, at)];
  });
}

function validateCondition(condition: Stored<Condition>, path: string): FieldError[] {
  const errors = breaks(`${path}.type`, condition.type ?? '', qualifiedName);
  const status = condition.status ?? '';
  if (!statuses.includes(status)) errors.push(notSupported(`${path}.status`, status, statuses));
  const generation = Number(condition.observedGeneration ?? 0);
  if (generation < 0) {
    const detail = 'must be greater than or equal to zero';
    errors.push(invalid(`${path}.observedGeneration`, generation, detail));
  }
  if ((condition.lastTransitionTime ?? '') === '') {
    errors.push(required(`${path}.lastTransitionTime`, 'must be set'));
  }
  appendAll(errors, validateReason(condition.reason ?? '', `${path}.reason`));
  if (Buffer.byteLength(condition.message ?? '') > messageBytesMax) {
    errors.push(tooLong(`${path}.message`, messageBytesMax));
  }
  return errors;
}

function validateReason(reason: string, field: string): FieldError[] {
  if (reason === '') return [required(field, 'must be set')];
  const isFormed = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason);
  const isLong = Buffer.byteLength(reason) > reasonBytesMax;
  return [
    ...(isFormed ? [] : [invalid(field, reason, reasonDetail)]),
    ...(isLong ? [tooLong(field, reasonBytesMax)] : []),
  ];
}
