import type { ApiObject, FieldError, JsonObject } from '@wheelhouse/machinery';
import { listAt } from '../cells.ts';
import type { Strategy } from '../resource-def.ts';
import { fillAbsent, objectsAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

/** Webhooks of `v1beta1`: lenient where the current version insists. */

function fillDefaults(object: JsonObject): void {
  for (const webhook of objectsAt(object, 'webhooks')) {
    fillAbsent(webhook, {
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      sideEffects: 'Unknown',
      timeoutSeconds: 30,
    });
    if (listAt(webhook, 'admissionReviewVersions').length === 0) {
      webhook['admissionReviewVersions'] = ['v1beta1'];
    }
  }
}

/** Side effects that could be had, and names given twice, are let through. */
function lenient(object: ApiObject, judge: (object: ApiObject) => readonly FieldError[]) {
  const webhooks = objectsAt(object, 'webhooks').map((webhook) => {
    const isAllowed = ['Some', 'Unknown'].includes(String(webhook['sideEffects']));
    return isAllowed ? { ...webhook, sideEffects: 'None' } : webhook;
  });
  const isSameName = ({ type, field }: FieldError) =>
    type === 'FieldValueDuplicate' && /^webhooks\[\d+\]\.name$/.test(field);
  return judge({ ...object, webhooks }).filter((error) => !isSameName(error));
}

const rules = (strategy: Strategy): Partial<Strategy> => ({
  validateCreate: (context, object) =>
    lenient(object, (one) => strategy.validateCreate?.(context, one) ?? []),
  validateUpdate: (context, object, old) =>
    lenient(object, (one) => strategy.validateUpdate?.(context, one, old) ?? []),
});

/** Both kinds of webhook configuration. */
export function olderAdmission(): readonly OlderKind[] {
  const facts = 'admissionregistration';
  const older: OlderVersion = { facts, version: 'v1beta1', defaults: fillDefaults, rules };
  return ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].map((kind) => ({
    facts,
    kind,
    older: [older],
  }));
}
