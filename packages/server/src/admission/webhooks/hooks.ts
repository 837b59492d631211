import {
  type ApiObject,
  isObject,
  type JsonObject,
  type JsonValue,
  type LabelSelection,
  objectsOf,
  stringsOf,
  textOf,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { type OperationRule, rulesOf, selectorOf } from '../matching/rules.ts';
import type { WebhookAddress } from './port.ts';

/** A named CEL condition. */
export interface NamedExpression {
  readonly name: string;
  readonly expression: string;
}

/** One webhook of a configuration, parsed once (ADM-2). */
export interface Hook {
  /** The configuration, the webhook's name, and the number of earlier webhooks of that name. */
  readonly uid: string;
  readonly configuration: string;
  readonly name: string;
  readonly address: WebhookAddress;
  readonly rules: readonly OperationRule[];
  readonly matchPolicy: 'Exact' | 'Equivalent';
  readonly namespaceSelector: LabelSelection;
  readonly objectSelector: LabelSelection;
  readonly conditions: readonly NamedExpression[];
  readonly failurePolicy: 'Ignore' | 'Fail';
  readonly timeoutMs: number;
  /** Whether it may be called for a dry run. */
  readonly knowsDryRuns: boolean;
  /** Called again if a later one changed the object. */
  readonly isReinvocable: boolean;
  readonly reviewVersions: readonly string[];
}

/** Calls all hooks for a request; throws the error that rejects it. */
export type Dispatch = (call: AdmissionCall, hooks: readonly Hook[]) => Promise<void>;

/** The webhooks of a configuration, in order and in steps (TRUST-2). */
export function* hooksOf(configuration: ApiObject): Generator<void, readonly Hook[]> {
  const name = configuration.metadata.name ?? '';
  const seen = new Map<string, number>();
  const hooks: Hook[] = [];
  for (const webhook of objectsOf(configuration['webhooks'])) {
    const own = textOf(webhook['name']);
    const before = seen.get(own) ?? 0;
    seen.set(own, before + 1);
    hooks.push(hookOf(webhook, { uid: `${name}/${own}/${before}`, configuration: name }));
    yield;
  }
  return hooks;
}

const defaultTimeoutSeconds = 10;

function hookOf(webhook: JsonObject, place: Pick<Hook, 'uid' | 'configuration'>): Hook {
  const seconds = webhook['timeoutSeconds'];
  return {
    ...place,
    name: textOf(webhook['name']),
    address: addressOf(webhook['clientConfig']),
    rules: rulesOf(webhook['rules']),
    matchPolicy: webhook['matchPolicy'] === 'Exact' ? 'Exact' : 'Equivalent',
    namespaceSelector: selectorOf(webhook['namespaceSelector']),
    objectSelector: selectorOf(webhook['objectSelector']),
    conditions: conditionsOf(webhook['matchConditions']),
    failurePolicy: webhook['failurePolicy'] === 'Ignore' ? 'Ignore' : 'Fail',
    timeoutMs: 1000 * (typeof seconds === 'number' ? seconds : defaultTimeoutSeconds),
    knowsDryRuns: ['None', 'NoneOnDryRun'].includes(textOf(webhook['sideEffects'])),
    isReinvocable: webhook['reinvocationPolicy'] === 'IfNeeded',
    reviewVersions: stringsOf(webhook['admissionReviewVersions']),
  };
}

/** Reads named expressions from an object. */
export function conditionsOf(list: JsonValue | undefined): readonly NamedExpression[] {
  return objectsOf(list).map((condition) => ({
    name: textOf(condition['name']),
    expression: textOf(condition['expression']),
  }));
}

/** The address in a `clientConfig`; a CA bundle of only white space counts as absent. */
export function addressOf(config: JsonValue | undefined): WebhookAddress {
  const clientConfig = isObject(config) ? config : {};
  const bundle = Buffer.from(textOf(clientConfig['caBundle']), 'base64').toString('utf8');
  const caPem = bundle.trim() === '' ? undefined : bundle;
  const service = clientConfig['service'];
  if (!isObject(service)) return { url: textOf(clientConfig['url']), caPem };
  const port = service['port'];
  return {
    service: {
      namespace: textOf(service['namespace']),
      name: textOf(service['name']),
      path: textOf(service['path']),
      port: typeof port === 'number' ? port : 443,
    },
    caPem,
  };
}
