import { objectsOf, textsOf } from '../admission/matching/rules.ts';
import { conditionsOf } from '../admission/webhooks/hooks.ts';
import type { Clock } from '../base/clock.ts';
import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import type { CatalogueSnapshot, ResourceDef, VersionDef } from '../catalogue/resource-def.ts';
import type { ExpressionUse } from '../engines/cel/check-expression.ts';
import type { Schema } from '../engines/schema/schema.ts';
import { type ApiObject, apiVersionOf } from '../meta/types.ts';
import type { CachePool } from '../registry/cache-pool.ts';
import { followBeside } from '../registry/follow.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import type { Inside } from './inside.ts';
import { createWorkQueue } from './work-queue.ts';

/** Kinds that the expressions of one rule are checked against. */
const typesMax = 10;

/**
 * Tells in the status of each ValidatingAdmissionPolicy what its expressions would stumble over, by the
 * types of the kinds that its rules name (ADM-3). Looked at once for each change of its spec; what
 * checks types is loaded with the first policy.
 */
export function startPolicyTypeChecking(options: {
  readonly policies: ResourceDef;
  readonly caches: CachePool;
  readonly inside: Inside;
  readonly snapshot: () => CatalogueSnapshot;
  readonly clock: Clock;
  readonly logger: Logger;
}): { close(): Promise<void> } {
  const { policies, caches, inside, snapshot, clock, logger } = options;
  const cache = caches.of(policies);
  const run = async (name: string) => {
    const entry = await cache.get(name, undefined);
    if (entry === undefined) return;
    const policy = decodeEntry(entry);
    const generation = policy.metadata.generation ?? 0;
    if (observedGeneration(policy) >= generation) return;
    const typeChecking = await checkTypes(policy, snapshot());
    const at = { def: policies, namespace: '', name, subresource: 'status' };
    await inside.change(at, (current) => {
      if ((current.metadata.generation ?? 0) !== generation) return current;
      const status = isObject(current['status']) ? current['status'] : {};
      return { ...current, status: { ...status, observedGeneration: generation, typeChecking } };
    });
  };
  const queue = createWorkQueue({ name: 'policy-type-checking', clock, logger, run, workers: 1 });
  const following = followBeside(cache, {
    tell(key, current) {
      if (current !== undefined) queue.add(key);
    },
    failed: (error) => logger.error('policies could not be listed', { error: String(error) }),
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

/** A kind that a policy is about. */
interface CheckedKind {
  /** As upstream prints it: `apps/v1, Kind=Deployment`. */
  readonly shown: string;
  readonly schema: Schema;
}

async function checkTypes(policy: ApiObject, snapshot: CatalogueSnapshot): Promise<JsonObject> {
  const spec = isObject(policy['spec']) ? policy['spec'] : {};
  const [{ compileExpression }, { typeOfKind }] = await Promise.all([
    import('../engines/cel/check-expression.ts'),
    import('../engines/cel/kind-types.ts'),
  ]);
  const params = paramsOf(spec, snapshot);
  const list = conditionsOf(spec['variables']);
  const names = ['object', 'oldObject', 'request', 'namespaceObject', 'variables', 'authorizer'];
  const uses = kindsOf(spec, snapshot).map(({ shown, schema }) => {
    const object = typeOfKind(schema, shown);
    const typed = new Map([
      ['object', object],
      ['oldObject', object],
      ...(params === undefined ? [] : [['params', typeOfKind(params, 'params')] as const]),
    ]);
    const variables = isObject(spec['paramKind']) ? [...names, 'params'] : names;
    const use: ExpressionUse = { variables, wanted: [], own: { list }, typed };
    return { shown, use };
  });
  const check = (expression: string, fieldRef: string): JsonObject[] => {
    const warnings = uses.flatMap(({ shown, use }) => {
      const compiled = compileExpression(expression, use);
      if (!('problem' in compiled)) return [];
      return [`${shown}: ${compiled.problem.replace(/^compilation failed: /, '')}\n`];
    });
    return warnings.length === 0 ? [] : [{ fieldRef, warning: warnings.join('\n') }];
  };
  const expressionWarnings = objectsOf(spec['validations']).flatMap((validation, index) => {
    const at = `spec.validations[${index}]`;
    const message = text(validation['messageExpression']);
    return [
      ...check(text(validation['expression']), `${at}.expression`),
      ...(message === '' ? [] : check(message, `${at}.messageExpression`)),
    ];
  });
  return expressionWarnings.length === 0 ? {} : { expressionWarnings };
}

const text = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '');

function paramsOf(spec: JsonObject, snapshot: CatalogueSnapshot): Schema | undefined {
  const { paramKind } = spec;
  if (!isObject(paramKind)) return undefined;
  for (const def of snapshot.defs) {
    if (def.kind !== paramKind['kind']) continue;
    const version = def.versions.find(
      (one) => apiVersionOf({ group: def.group, version: one.version }) === paramKind['apiVersion'],
    );
    if (version !== undefined) return version.schema;
  }
  return undefined;
}

/** The kinds that a policy's rules name, in their order; rules with wildcards name none. */
function kindsOf(spec: JsonObject, snapshot: CatalogueSnapshot): readonly CheckedKind[] {
  const constraints = isObject(spec['matchConstraints']) ? spec['matchConstraints'] : {};
  const found = new Map<string, CheckedKind & { readonly order: readonly string[] }>();
  for (const rule of objectsOf(constraints['resourceRules'])) {
    for (const { def, version } of namedBy(rule, snapshot)) {
      const shown = `${def.group}/${version.version}, Kind=${def.kind}`;
      const order = [def.group, version.version, def.kind];
      found.set(shown, { shown, schema: version.schema, order });
    }
  }
  return [...found.values()].sort((one, other) => compareLists(one.order, other.order));
}

function compareLists(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((text, index) => text !== other[index]);
  if (at < 0) return 0;
  return (one[at] ?? '') < (other[at] ?? '') ? -1 : 1;
}

function namedBy(
  rule: JsonObject,
  snapshot: CatalogueSnapshot,
): readonly { readonly def: ResourceDef; readonly version: VersionDef }[] {
  const groups = [...textsOf(rule['apiGroups'])].sort();
  const versions = [...textsOf(rule['apiVersions'])].sort();
  if (groups.includes('*') || versions.includes('*')) return [];
  const resources = textsOf(rule['resources']).filter((one) => !/[*/]/.test(one));
  return groups
    .flatMap((group) =>
      versions.flatMap((version) =>
        [...resources].sort().flatMap((resource) => snapshot.find(group, version, resource) ?? []),
      ),
    )
    .slice(0, typesMax);
}
