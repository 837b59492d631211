import type { Value } from '@wheelhouse/cel';
import { type ApiObject, isObject, type JsonObject, notFound } from '@wheelhouse/machinery';
import { requestVariables } from '../cel/run.ts';
import { kindFor } from '../matching/facts.ts';
import type { Judging } from '../matching/form.ts';
import { convertTo, type Served } from '../matching/versioned.ts';
import { requestFields } from '../webhooks/review.ts';

/** What expressions are shown of a request, in one served version. */
export class PolicySubject {
  readonly #judging: Judging;
  readonly #converted = new Map<string, { object?: ApiObject; old?: ApiObject }>();
  #namespace: Promise<JsonObject | undefined> | undefined;

  constructor(judging: Judging) {
    this.#judging = judging;
  }

  /** The variables of expressions, but for the policy's own. Throws 404 for a lost namespace. */
  async variables(form: Served, params: ApiObject | undefined): Promise<Map<string, Value>> {
    const { call, facts, tools } = this.#judging;
    const { def, version } = form;
    const resource = { group: def.group, version: version.version, resource: def.resource };
    const kind = kindFor(def, version, facts.subresource);
    const request = requestFields({ call, facts, resource, kind }, tools.dialect);
    this.#namespace ??= this.#readNamespace();
    const namespaceObject = await this.#namespace;
    const { object, old } = await this.#in(form);
    const { user } = call.context;
    const inputs = { object, old, request, namespaceObject, params, user, facts };
    const costs = tools.isOn('StrictCostEnforcementForVAP') ? 'counted' : 'waived';
    return requestVariables(inputs, tools, { costs });
  }

  async #in(form: Served): Promise<{ object: ApiObject | undefined; old: ApiObject | undefined }> {
    const { call, tools } = this.#judging;
    const key = `${form.def.group}/${form.version.version}/${form.def.resource}`;
    const cached = this.#converted.get(key);
    if (cached !== undefined) return { object: cached.object, old: cached.old };
    const snapshot = tools.snapshot();
    const convert = (object: ApiObject | undefined) =>
      object === undefined ? undefined : convertTo(object, form, snapshot);
    const [object, old] = await Promise.all([convert(call.object), convert(call.old)]);
    this.#converted.set(key, {
      ...(object === undefined ? {} : { object }),
      ...(old === undefined ? {} : { old }),
    });
    return { object, old };
  }

  /** What of the namespace expressions may look at; a Namespace itself is in none here. */
  async #readNamespace(): Promise<JsonObject | undefined> {
    const { facts, tools } = this.#judging;
    const isNamespace = facts.kind.group === '' && facts.kind.kind === 'Namespace';
    if (facts.namespace === '' || isNamespace) return undefined;
    const at = { namespace: '', name: facts.namespace };
    const found = await tools.objects.get('namespaces', at);
    if (found === undefined) throw notFound({ group: '', resource: 'namespaces' }, facts.namespace);
    const { managedFields: _, ownerReferences: __, selfLink: ___, ...metadata } = found.metadata;
    return {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata,
      ...(isObject(found['spec']) ? { spec: found['spec'] } : {}),
      ...(isObject(found['status']) ? { status: found['status'] } : {}),
    };
  }
}
