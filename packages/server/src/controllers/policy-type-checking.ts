import {
  type ExpressionUse,
  loadExpressionChecker,
  loadKindTypes,
  type Type,
} from '@wheelhouse/cel';
import type { CatalogueSnapshot, KindBehavior, ResourceDef, VersionDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  appendAll,
  type Clock,
  isObject,
  type JsonObject,
  runInSlices,
  textOf,
} from '@wheelhouse/machinery';
import type { Property, Schema } from '@wheelhouse/schema';
import { objectsOf, textsOf } from '../admission/matching/rules.ts';
import { conditionsOf } from '../admission/webhooks/hooks.ts';
import { followBeside } from '../registry/caches.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import type { ControllerTools } from './tools.ts';
import { createWorkQueue } from './work-queue.ts';

/** Maximum number of kinds per rule that expressions are checked against. */
const typesMax = 10;

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
): { close(): Promise<void> } {
  const { policies, caches, writer, snapshot, logger } = options;
  const cache = caches.of(policies);
  const metadata = policies.versions[0]?.schema.properties?.get('metadata');
  const run = async (name: string) => {
    const entry = await cache.get(name, undefined);
    if (entry === undefined) return;
    const policy = decodeEntry(entry);
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
  return {
    close() {
      following.close();
      return queue.close();
    },
  };
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
  const uses = usesOf(checking, typeOf);
  function* check(expression: string, fieldRef: string): Generator<void, JsonObject[]> {
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
    for (const [index, validation] of objectsOf(spec['validations']).entries()) {
      const at = `spec.validations[${index}]`;
      const message = textOf(validation['messageExpression']);
      appendAll(warnings, yield* check(textOf(validation['expression']), `${at}.expression`));
      if (message === '') continue;
      appendAll(warnings, yield* check(message, `${at}.messageExpression`));
    }
    return warnings;
  }
  const expressionWarnings = await runInSlices(checkAll(), clock);
  return expressionWarnings.length === 0 ? {} : { expressionWarnings };
}

/** The variables of expressions for each kind; parameters only if their kind is known. */
function usesOf(
  { spec, snapshot }: Checking,
  typeOf: (kind: CheckedKind) => Type | undefined,
): readonly { readonly shown: string; readonly use: ExpressionUse }[] {
  const list = conditionsOf(spec['variables']);
  const paramKind = paramsOf(spec, snapshot);
  const params = paramKind === undefined ? undefined : typeOf(paramKind);
  const names = ['object', 'oldObject', 'request', 'namespaceObject', 'variables', 'authorizer'];
  const variables = params === undefined ? names : [...names, 'params'];
  return kindsOf(spec, snapshot).flatMap((kind) => {
    const object = typeOf(kind);
    if (object === undefined) return [];
    const typed = new Map([
      ['object', object],
      ['oldObject', object],
      ...(params === undefined ? [] : [['params', params] as const]),
    ]);
    return [{ shown: kind.text, use: { variables, resultTypes: [], own: { list }, typed } }];
  });
}

function paramsOf(spec: JsonObject, snapshot: CatalogueSnapshot): CheckedKind | undefined {
  const { paramKind } = spec;
  if (!isObject(paramKind)) return undefined;
  for (const def of snapshot.defs) {
    if (def.kind !== paramKind['kind']) continue;
    const version = def.versions.find(
      (versionDef) =>
        apiVersionOf({ group: def.group, version: versionDef.version }) === paramKind['apiVersion'],
    );
    if (version !== undefined) return checkedKind(def, version);
  }
  return undefined;
}

function checkedKind(def: ResourceDef, { version, schema }: VersionDef): CheckedKind {
  const text = `${def.group}/${version}, Kind=${def.kind}`;
  return { text, kind: def.kind, schema, metadata: def.behavior.metadataSchema };
}

/** The kinds that a policy's rules name, sorted by name. */
function kindsOf(spec: JsonObject, snapshot: CatalogueSnapshot): readonly CheckedKind[] {
  const constraints = isObject(spec['matchConstraints']) ? spec['matchConstraints'] : {};
  const kinds = new Map<string, CheckedKind & { readonly order: readonly string[] }>();
  for (const rule of objectsOf(constraints['resourceRules'])) {
    const named = kindsOfRule(rule, snapshot);
    for (const { def, version } of named.slice(0, typesMax)) {
      const kind = checkedKind(def, version);
      kinds.set(kind.text, { ...kind, order: [def.group, version.version, def.kind] });
    }
    // As in kube-apiserver, rules after the one that reaches the maximum are ignored.
    if (named.length >= typesMax) break;
  }
  return [...kinds.values()].sort((left, right) => compareLists(left.order, right.order));
}

function compareLists(left: readonly string[], right: readonly string[]): number {
  const at = left.findIndex((text, index) => text !== right[index]);
  if (at < 0) return 0;
  return (left[at] ?? '') < (right[at] ?? '') ? -1 : 1;
}

/** The kinds that a rule names; none if its groups or versions have wildcards. */
function kindsOfRule(rule: JsonObject, snapshot: CatalogueSnapshot): readonly ResolvedKind[] {
  const groups = [...textsOf(rule['apiGroups'])].sort();
  const versions = [...textsOf(rule['apiVersions'])].sort();
  if ([...groups, ...versions].some((name) => name.includes('*'))) return [];
  const resources = textsOf(rule['resources']).filter((resource) => !/[*/]/.test(resource));
  return groups.flatMap((group) =>
    versions.flatMap((version) =>
      [...resources].sort().flatMap((resource) => resolve({ group, version, resource }, snapshot)),
    ),
  );
}

interface ResolvedKind {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * Resolves a resource as kube-apiserver does: by its plural or singular name, and in all groups if
 * the group is empty.
 */
function resolve(
  at: { readonly group: string; readonly version: string; readonly resource: string },
  snapshot: CatalogueSnapshot,
): readonly ResolvedKind[] {
  const name = at.resource.toLowerCase();
  return snapshot.defs.flatMap((def) => {
    if (at.group !== '' && def.group !== at.group) return [];
    if (def.resource !== name && def.singular !== name) return [];
    const version = snapshot.find(def.group, at.version, def.resource)?.version;
    return version === undefined ? [] : [{ def, version }];
  });
}
