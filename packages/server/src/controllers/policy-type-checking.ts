import {
  type ExpressionUse,
  loadExpressionChecker,
  loadKindTypes,
  type Type,
} from '@wheelhouse/cel';
import {
  type CatalogueSnapshot,
  type KindBehavior,
  type ResourceDef,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  appendAll,
  type Clock,
  isObject,
  type JsonObject,
  objectsOf,
  runInSlices,
  stringsOf,
  textOf,
} from '@wheelhouse/machinery';
import type { Property, Schema } from '@wheelhouse/schema';
import { conditionsOf } from '../admission/webhooks/hooks.ts';
import { followBeside } from '../registry/caches.ts';
import { decodedInSlices } from '../registry/object-codec.ts';
import type { ControllerTools } from './tools.ts';
import { type Controller, createWorkQueue, runningQueue } from './work-queue.ts';

/** Maximum number of kinds per rule that expressions are checked against. */
const typesMax = 10;

/** Maximum number of steps that resolve the rules of a policy. */
const stepsMax = 100_000;

/**
 * Reports the type errors of each ValidatingAdmissionPolicy's expressions, for the kinds that its
 * rules name, in the policy's status (ADM-3). Runs once for each change of a spec; the type checker
 * is loaded with the first policy.
 */
export function startPolicyTypeChecking(
  options: ControllerTools & {
    readonly policies: ResourceDef;
    readonly snapshot: () => CatalogueSnapshot;
  },
): Controller {
  const { policies, caches, writer, snapshot, logger } = options;
  const cache = caches.of(policies);
  const metadata = policies.versions[0]?.schema.properties?.get('metadata');
  const run = async (name: string) => {
    const entry = await cache.get(name, undefined);
    if (entry === undefined) return;
    const policy = await decodedInSlices(entry, options.clock);
    const generation = policy.metadata.generation ?? 0;
    if (observedGeneration(policy) >= generation) return;
    const spec = isObject(policy['spec']) ? policy['spec'] : {};
    const checking = { spec, snapshot: snapshot(), metadata };
    const typeChecking = await checkTypes(checking, options.clock);
    const at = { def: policies, namespace: '', name, subresource: 'status' };
    const { apiVersion, kind } = policy;
    const status = { observedGeneration: generation, typeChecking };
    await writer.apply(at, { apiVersion, kind, metadata: { name }, status });
  };
  const queue = createWorkQueue({ ...options, name: 'policy-type-checking', run, workers: 1 });
  const following = followBeside(cache, {
    onEntry(key, current) {
      if (current !== undefined) queue.add(key);
    },
    failed: (error) => logger.error('cannot list admission policies', { error: String(error) }),
  });
  return runningQueue(queue, following);
}

function observedGeneration({ status }: ApiObject): number {
  const observed = isObject(status) ? status['observedGeneration'] : undefined;
  return typeof observed === 'number' ? observed : 0;
}

/** A kind that a policy applies to. */
interface CheckedKind {
  /** kube-apiserver's text for the kind: `apps/v1, Kind=Deployment`. */
  readonly text: string;
  readonly kind: string;
  readonly schema: Schema;
  readonly metadata: KindBehavior['metadataSchema'];
}

/** The context of a policy's type check. */
interface Checking {
  readonly spec: JsonObject;
  readonly snapshot: CatalogueSnapshot;
  /** The published schema of custom kinds' metadata. */
  readonly metadata: Property | undefined;
}

/** Checks the expressions of a policy against its kinds, in slices (TRUST-2). */
async function checkTypes(
  checking: Checking,
  clock: Pick<Clock, 'monotonic'>,
): Promise<JsonObject> {
  const { spec } = checking;
  const [{ compileExpression }, { typeOfKind }] = await Promise.all([
    loadExpressionChecker(),
    loadKindTypes(),
  ]);
  const typeOf = ({ kind, schema, metadata }: CheckedKind) =>
    typeOfKind(schema, {
      name: kind,
      metadata: metadata === 'published' ? checking.metadata : undefined,
    });
  function* check(
    { expression, fieldRef }: { readonly expression: string; readonly fieldRef: string },
    uses: readonly CheckedUse[],
  ): Generator<void, JsonObject[]> {
    const warnings: string[] = [];
    for (const { shown, use } of uses) {
      yield;
      const compiled = yield* compileExpression(expression, use);
      if (!('problem' in compiled)) continue;
      warnings.push(`${shown}: ${compiled.problem.replace(/^compilation failed: /, '')}\n`);
    }
    return warnings.length === 0 ? [] : [{ fieldRef, warning: warnings.join('\n') }];
  }
  function* checkAll(): Generator<void, JsonObject[]> {
    const warnings: JsonObject[] = [];
    const uses = yield* usesOf(checking, typeOf);
    for (const [index, validation] of objectsOf(spec['validations']).entries()) {
      const at = `spec.validations[${index}]`;
      for (const name of ['expression', 'messageExpression']) {
        const expression = textOf(validation[name]);
        if (name === 'messageExpression' && expression === '') continue;
        appendAll(warnings, yield* check({ expression, fieldRef: `${at}.${name}` }, uses));
      }
    }
    return warnings;
  }
  const expressionWarnings = await runInSlices(checkAll(), clock);
  return expressionWarnings.length === 0 ? {} : { expressionWarnings };
}

/** How an expression is used for one kind. */
interface CheckedUse {
  /** kube-apiserver's text for the kind. */
  readonly shown: string;
  readonly use: ExpressionUse;
}

/** The variables of expressions for each kind; parameters only if their kind is known. */
function* usesOf(
  { spec, snapshot }: Checking,
  typeOf: (kind: CheckedKind) => Type | undefined,
): Generator<void, readonly CheckedUse[]> {
  const list = conditionsOf(spec['variables']);
  const paramKind = paramsOf(spec, snapshot);
  const params = paramKind === undefined ? undefined : typeOf(paramKind);
  const names = ['object', 'oldObject', 'request', 'namespaceObject', 'variables', 'authorizer'];
  const variables = params === undefined ? names : [...names, 'params'];
  const uses: CheckedUse[] = [];
  for (const kind of yield* kindsOf(spec, snapshot)) {
    yield;
    const object = typeOf(kind);
    if (object === undefined) continue;
    const typed = new Map([
      ['object', object],
      ['oldObject', object],
      ...(params === undefined ? [] : [['params', params] as const]),
    ]);
    uses.push({ shown: kind.text, use: { variables, resultTypes: [], own: { list }, typed } });
  }
  return uses;
}

function paramsOf(spec: JsonObject, snapshot: CatalogueSnapshot): CheckedKind | undefined {
  const { paramKind } = spec;
  if (!isObject(paramKind)) return undefined;
  for (const def of snapshot.defs) {
    if (def.kind !== paramKind['kind']) continue;
    const version = versionNamed(def, textOf(paramKind['apiVersion']));
    if (version !== undefined) return checkedKind(def, version);
  }
  return undefined;
}

function checkedKind(def: ResourceDef, { version, schema }: VersionDef): CheckedKind {
  const text = `${def.group}/${version}, Kind=${def.kind}`;
  return { text, kind: def.kind, schema, metadata: def.behavior.metadataSchema };
}

/** The kinds that a policy's rules name, sorted by name. */
function* kindsOf(
  spec: JsonObject,
  snapshot: CatalogueSnapshot,
): Generator<void, readonly CheckedKind[]> {
  const constraints = isObject(spec['matchConstraints']) ? spec['matchConstraints'] : {};
  const index = yield* kindIndexOf(snapshot);
  const kinds = new Map<string, CheckedKind & { readonly order: readonly string[] }>();
  let steps = 0;
  for (const rule of objectsOf(constraints['resourceRules'])) {
    yield;
    let count = 0;
    for (const resolved of kindsOfRule(rule, { index, snapshot })) {
      yield;
      steps += 1;
      if (resolved !== undefined) {
        const kind = checkedKind(resolved.def, resolved.version);
        kinds.set(kind.text, { ...kind, order: orderOf(resolved) });
        count += 1;
      }
      if (count === typesMax || steps > stepsMax) break;
    }
    // As in kube-apiserver, rules after the one that reaches the maximum are ignored.
    if (count === typesMax || steps > stepsMax) break;
  }
  return [...kinds.values()].sort((left, right) => compareLists(left.order, right.order));
}

const orderOf = ({ def, version }: ResolvedKind) => [def.group, version.version, def.kind];

function compareLists(left: readonly string[], right: readonly string[]): number {
  const at = left.findIndex((text, index) => text !== right[index]);
  if (at < 0) return 0;
  return (left[at] ?? '') < (right[at] ?? '') ? -1 : 1;
}

/** The served kinds by what rules name; the empty group stands for all groups. */
interface KindIndex {
  /** By group and plural or singular name: `apps/deployments`. */
  readonly byName: ReadonlyMap<string, readonly ResourceDef[]>;
  readonly names: ReadonlySet<string>;
  /** The versions of each group. */
  readonly versions: ReadonlyMap<string, ReadonlySet<string>>;
}

function* kindIndexOf(snapshot: CatalogueSnapshot): Generator<void, KindIndex> {
  const byName = new Map<string, ResourceDef[]>();
  const names = new Set<string>();
  const versions = new Map<string, Set<string>>([['', new Set()]]);
  for (const def of snapshot.defs) {
    yield;
    for (const group of new Set(['', def.group])) {
      for (const name of new Set([def.resource, def.singular])) {
        names.add(name);
        const named = byName.get(`${group}/${name}`);
        if (named === undefined) byName.set(`${group}/${name}`, [def]);
        else named.push(def);
      }
      const own = versions.get(group) ?? new Set();
      versions.set(group, own);
      for (const { version } of def.versions) own.add(version);
    }
  }
  return { byName, names, versions };
}

/**
 * The kinds that a rule names, in the order of groups, versions, and resources; none if its groups
 * or versions have wildcards. As in kube-apiserver, a resource is named by its plural or singular,
 * and the empty group means all. Undefined for each step that finds no kind, so that the caller can
 * pause.
 */
function* kindsOfRule(
  rule: JsonObject,
  { index, snapshot }: { readonly index: KindIndex; readonly snapshot: CatalogueSnapshot },
): Generator<ResolvedKind | undefined> {
  const hasWildcard = (name: string) => name.includes('*');
  const [groups, versions] = [stringsOf(rule['apiGroups']), stringsOf(rule['apiVersions'])];
  if (groups.some(hasWildcard) || versions.some(hasWildcard)) return;
  const resources = stringsOf(rule['resources'])
    .map((resource) => resource.toLowerCase())
    .filter((resource) => index.names.has(resource))
    .sort();
  const knownVersions = versions.filter((version) => index.versions.get('')?.has(version)).sort();
  for (const group of groups.filter((name) => index.versions.has(name)).sort()) {
    const served = index.versions.get(group);
    for (const version of knownVersions) {
      yield undefined;
      if (served?.has(version) !== true) continue;
      for (const resource of resources) {
        yield undefined;
        for (const def of index.byName.get(`${group}/${resource}`) ?? []) {
          const found = snapshot.find(def.group, version, def.resource)?.version;
          yield found && { def, version: found };
        }
      }
    }
  }
}

interface ResolvedKind {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}
