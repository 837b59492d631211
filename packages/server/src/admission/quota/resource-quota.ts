import {
  type Amounts,
  amountsOf,
  objectAt,
  type ResourceDef,
  type Stored,
} from '@wheelhouse/kinds';
import type { ResourceQuota } from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  asApiObject,
  getOrMake,
  internalError,
  type JsonObject,
  type MaybePromise,
  qualifiedResource,
  runInSlices,
  StatusError,
  sumQuantities,
} from '@wheelhouse/machinery';
import type { AdmissionCall, Target } from '../../registry/contract.ts';
import { serverContext } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import type { AdmissionPlugin } from '../chain.ts';
import type { LimitedResource } from '../configuration/plugins.ts';
import { type AdmissionTools, refusal } from '../tools.ts';
import {
  type QuotaEvaluator,
  quotaEvaluator,
  type ScopeRequirement,
  scopesOf,
} from './quota-usage.ts';

/**
 * Enforces the quotas of a namespace (ADM-1): charges the usage of a write to each quota that
 * counts it before the object is stored, and rejects the write if a quota would be exceeded.
 * Charges are serialized and conditional on an unchanged quota, so concurrent writes never exceed
 * one together. A dry run is checked and charges nothing.
 */
export function resourceQuota(tools: AdmissionTools): AdmissionPlugin {
  const eventGroups = ['', tools.dialect.group('events')];
  /** Whether no quota counts a kind: it is transient or not stored. */
  const isIgnored = ({ group, resource, isVirtual }: ResourceDef): boolean =>
    isVirtual === true || (resource === 'events' && eventGroups.includes(group));
  const evaluators = new WeakMap<ResourceDef, QuotaEvaluator>();
  const evaluatorOf = (def: ResourceDef) =>
    getOrMake(evaluators, def, () => quotaEvaluator(def, tools.dialect));
  const { limitedResources = [] } = tools.configurations;
  const limitedScopes = limitedResources.flatMap(({ matchScopes }) => matchScopes);
  return {
    name: 'ResourceQuota',
    validate(call) {
      const { target, operation } = call;
      const { namespace, def } = target;
      const isResize = def.resource === 'pods' && target.subresource === 'resize';
      if (namespace === '' || operation === 'DELETE') return undefined;
      if (target.subresource !== '' && !isResize) return undefined;
      if (isIgnored(def)) return undefined;
      const evaluator = evaluatorOf(def);
      if (operation === 'UPDATE' && !evaluator.grows && !isResize) return undefined;
      const limited = limitedResources.filter(
        ({ group, resource }) => group === def.group && resource === def.resource,
      );
      const find = () => tools.objects.list('resourcequotas', namespace);
      // Most namespaces have no quotas and need no promise.
      const quotas = limited.length + limitedScopes.length === 0 ? find() : undefined;
      if (quotas !== undefined && !(quotas instanceof Promise) && quotas.length === 0) {
        return undefined;
      }
      return charge(tools, { call, evaluator, find, limited, limitedScopes, quotas });
    },
  };
}

async function charge(
  tools: AdmissionTools,
  context: Omit<ChargeContext, 'quotas'> & {
    /** The namespace's quotas; undefined if the configuration limits the write even without any. */
    readonly quotas: MaybePromise<readonly ApiObject[]> | undefined;
    /** Reads the quotas again. */
    readonly find: () => MaybePromise<readonly ApiObject[]>;
  },
): Promise<void> {
  const { call, find } = context;
  const { namespace, def } = call.target;
  if (context.quotas !== undefined && (await context.quotas).length === 0) return;
  await tools.ledger.inTurn(namespace, async () => {
    const work = chargesOf(tools, { ...context, quotas: await find() });
    const charges = await runInSlices(work, tools.clock);
    if (call.context.dryRun || charges.length === 0) return;
    const [resource, object] = [qualifiedResource(def), asApiObject(call.object)];
    const withdraw = await tools.ledger.announce(namespace, resource, object);
    await makeCharges(tools, call, charges).catch(async (error: unknown) => {
      await withdraw?.();
      throw error;
    });
    tools.ledger.reserve(namespace, resource, object);
  });
}

/** The charge of one write to one quota. */
interface Charge {
  readonly quota: string;
  readonly amounts: Amounts;
}

interface ChargeContext {
  readonly call: AdmissionCall;
  readonly evaluator: QuotaEvaluator;
  readonly quotas: readonly ApiObject[];
  /** The limited resources of the configuration that the write uses. */
  readonly limited: readonly LimitedResource[];
  /** As in kube-apiserver, limited scopes apply whatever resource they are configured for. */
  readonly limitedScopes: readonly ScopeRequirement[];
}

/** The usage by an object, in steps; none without an object. */
function* usageOf(
  tools: AdmissionTools,
  evaluator: QuotaEvaluator,
  object: ApiObject | undefined,
): Generator<void, Amounts> {
  if (object === undefined) return new Map();
  const usage = evaluator.usage(object, tools.clock.now());
  return 'next' in usage ? yield* usage : usage;
}

/**
 * The charges of a write; throws 403 for the first quota that would be exceeded or whose usage is
 * unknown. In steps.
 */
function* chargesOf(
  tools: AdmissionTools,
  context: ChargeContext,
): Generator<void, readonly Charge[]> {
  const { call, evaluator, quotas } = context;
  const { object } = call;
  if (object === undefined) return [];
  const missing = evaluator.missing?.(asApiObject(object));
  const counting: { readonly quota: ApiObject; readonly names: readonly string[] }[] = [];
  for (const quota of quotas) {
    yield;
    const hard = objectAt(quota, 'status', 'hard') ?? {};
    const names = evaluator.matching(Object.keys(hard));
    const isIn = scopesOf(quota).every((scope) => evaluator.matchesScope(object, scope));
    if (names.length > 0 && isIn) counting.push({ quota, names });
  }
  for (const { quota, names } of counting) {
    yield;
    checkReported({ call, missing: missing && (yield* missing(names)), quota, names });
  }
  const usage = yield* usageOf(tools, evaluator, object);
  const old = call.operation === 'UPDATE' ? call.old : undefined;
  const delta = increase(usage, yield* usageOf(tools, evaluator, old));
  if (delta.size === 0) return [];
  yield;
  checkCovered(context, { covered: new Set(counting.flatMap(({ names }) => names)), usage });
  const charges: Charge[] = [];
  for (const { quota, names } of counting) {
    yield;
    const counted = new Set(names);
    const amounts = new Map([...delta].filter(([name]) => counted.has(name)));
    if (amounts.size === 0) continue;
    checkRoom(call, quota, amounts);
    charges.push({ quota: quota.metadata.name ?? '', amounts });
  }
  return charges;
}

/** Throws if a limited resource is used that no quota covers. */
function checkCovered(
  { call, evaluator, quotas, limited, limitedScopes }: ChargeContext,
  { covered, usage }: { readonly covered: ReadonlySet<string>; readonly usage: Amounts },
): void {
  const { object } = call;
  if (object === undefined) return;
  const parts = limited.flatMap(({ matchContains }) => matchContains);
  const uncovered = [...(parts.length === 0 ? [] : usage)]
    .filter(([name, { nano }]) => nano > 0n && !covered.has(name))
    .map(([name]) => name)
    .filter((name) => parts.some((part) => name.includes(part)));
  if (uncovered.length > 0) {
    throw refusal(call, `insufficient quota to consume: ${uncovered.sort().join(',')}`);
  }
  if (limitedScopes.length === 0) return;
  const matched = (scopes: readonly ScopeRequirement[]) =>
    scopes.filter((scope) => evaluator.matchesScope(object, scope));
  const coveredScopes = new Set(
    quotas.flatMap((quota) => matched(scopesOf(quota))).map(scopeNameOf),
  );
  const open = matched(limitedScopes).filter((scope) => !coveredScopes.has(scopeNameOf(scope)));
  if (open.length === 0) return;
  const shown = open.map(
    ({ scopeName, operator, values }) => `{${scopeName} ${operator} [${values.join(' ')}]}`,
  );
  // kube-apiserver gives no reason for this error, so it counts as a failure.
  const message = `insufficient quota to match these scopes: [${shown.join(' ')}]`;
  throw new StatusError({ code: 500, reason: '', message });
}

const scopeNameOf = ({ scopeName }: ScopeRequirement): string => scopeName;

function checkReported(options: {
  readonly call: AdmissionCall;
  /** What the object fails to set. */
  readonly missing: string | undefined;
  readonly quota: ApiObject;
  readonly names: readonly string[];
}): void {
  const { call, missing, quota, names } = options;
  const { name } = quota.metadata;
  if (missing !== undefined) throw refusal(call, `failed quota: ${name}: ${missing}`);
  const used = objectAt(quota, 'status', 'used') ?? {};
  if (names.every((resourceName) => Object.hasOwn(used, resourceName))) return;
  const resources = [...names].sort().join(',');
  throw refusal(call, `status unknown for quota: ${name}, resources: ${resources}`);
}

/** The additional usage; decreases are ignored here. */
function increase(usage: Amounts, before: Amounts): Amounts {
  const delta = new Map<string, { nano: bigint; text: string }>();
  for (const [name, amount] of usage) {
    const nano = amount.nano - (before.get(name)?.nano ?? 0n);
    if (nano <= 0n) continue;
    const more = { nano, text: amount.text };
    delta.set(name, before.has(name) ? sumQuantities([more]) : more);
  }
  return delta;
}

/** Those of a quota's amounts that a charge names: a quota may have thousands of others. */
function amountsAmong(list: JsonObject | undefined, charged: Amounts): Amounts {
  const names = [...charged.keys()].filter((name) => Object.hasOwn(list ?? {}, name));
  return amountsOf(Object.fromEntries(names.map((name) => [name, list?.[name]])));
}

function checkRoom(call: AdmissionCall, quota: Stored<ResourceQuota>, amounts: Amounts): void {
  const hard = amountsAmong(quota.status?.hard, amounts);
  const used = amountsAmong(quota.status?.used, amounts);
  const exceeded = [...amounts.keys()]
    .filter((name) => {
      const limit = hard.get(name)?.nano ?? 0n;
      return (used.get(name)?.nano ?? 0n) + (amounts.get(name)?.nano ?? 0n) > limit;
    })
    .sort();
  if (exceeded.length === 0) return;
  const shown = (list: Amounts) =>
    exceeded.map((name) => `${name}=${list.get(name)?.text ?? '0'}`).join(',');
  throw refusal(
    call,
    `exceeded quota: ${quota.metadata.name}, requested: ${shown(amounts)}, used: ${shown(used)}, limited: ${shown(hard)}`,
  );
}

/**
 * Charges the quotas in order; reverts earlier charges if a later one is refused. A quota that is
 * deleted meanwhile limits nothing.
 */
async function makeCharges(
  tools: AdmissionTools,
  call: AdmissionCall,
  charges: readonly Charge[],
): Promise<void> {
  const charged: Charge[] = [];
  try {
    for (const charge of charges) {
      if (await changeUsed(tools, { call, charge, sign: 1n })) charged.push(charge);
    }
  } catch (error) {
    for (const charge of charged) {
      try {
        await changeUsed(tools, { call, charge, sign: -1n });
      } catch (failure) {
        tools.ledger.markLost(call.target.namespace);
        tools.log('a charge to a resource quota could not be reverted', failure);
      }
    }
    throw error;
  }
}

/** @returns whether the quota exists */
async function changeUsed(
  tools: AdmissionTools,
  { call, charge, sign }: { call: AdmissionCall; charge: Charge; sign: 1n | -1n },
): Promise<boolean> {
  const def = tools.builtin('', 'resourcequotas');
  const version = def?.versions[0];
  if (def === undefined || version === undefined) throw internalError('there are no quotas');
  const target: Target = {
    def,
    version,
    namespace: call.target.namespace,
    name: charge.quota,
    subresource: 'status',
  };
  const charging = write(tools.registry(), {
    operation: 'update',
    target,
    context: serverContext,
    transform: ({ current }) => {
      const quota = asApiObject(current);
      if (sign > 0n) checkRoom(call, quota, charge.amounts);
      const status: JsonObject = objectAt(quota, 'status') ?? {};
      const used = objectAt(status, 'used') ?? {};
      const changed = changedAmounts(amountsAmong(used, charge.amounts), charge.amounts, sign);
      return { ...quota, status: { ...status, used: { ...used, ...changed } } };
    },
    source: 'patched',
    onAbsent: 'refuse',
  });
  try {
    await charging;
    return true;
  } catch (error) {
    if (error instanceof StatusError && error.status.reason === 'NotFound') return false;
    throw error;
  }
}

function changedAmounts(used: Amounts, amounts: Amounts, sign: 1n | -1n): JsonObject {
  return Object.fromEntries(
    [...amounts].map(([name, { nano, text }]) => {
      const present = used.get(name);
      const change = { nano: nano * sign, text };
      return [name, sumQuantities(present === undefined ? [change] : [present, change]).text];
    }),
  );
}
