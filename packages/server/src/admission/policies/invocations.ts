import type { Value } from '@wheelhouse/cel';
import { versionNamed } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type JsonObject,
  notFound,
  objectOf,
  paceFor,
  parseApiVersion,
  Slices,
  StatusError,
} from '@wheelhouse/machinery';
import {
  ConversionFailure,
  convertedKind,
  entriesIn,
} from '../../registry/conversion/converted-kinds.ts';
import { objectIn, objectKey, parsedAt } from '../../registry/object-codec.ts';
import type { Entry, EntryIndex } from '../../watchcache/entry.ts';
import { requestVariables } from '../cel/run.ts';
import { kindFor, selectsNamespace, selectsObject, showKind } from '../matching/rules.ts';
import {
  convertTo,
  formByRules,
  type ReviewedRequest,
  type Served,
} from '../matching/versioned.ts';
import type { AdmissionTools } from '../tools.ts';
import { requestFields } from '../webhooks/review.ts';
import type { Binding, MatchResources, ParamKind, PolicyBasis, PolicyHook } from './hooks.ts';

/** A policy or binding that is unusable; the message says why. */
class ConfigurationError extends Error {}

/** The objects of a request cannot be converted to the version that a policy's rules name. */
export class UnconvertibleError extends Error {}

/** The served kind of a policy's parameters. Throws ConfigurationError for an unknown kind. */
function servedParams(kind: ParamKind, tools: AdmissionTools): Served {
  const def = tools.defOfKind(kind.apiVersion, kind.kind);
  const version = def && versionNamed(def, kind.apiVersion);
  if (def !== undefined && version !== undefined) return { def, version };
  const { group = '', version: named = '' } = parseApiVersion(kind.apiVersion) ?? {};
  const shown = showKind({ group, version: named, kind: kind.kind });
  throw new ConfigurationError(`failed to find resource referenced by paramKind: '${shown}'`);
}

/**
 * The parameters of a binding; one undefined for a policy without parameters. Empty if the policy
 * does not apply. Throws ConfigurationError.
 */
async function paramsOf(
  policy: PolicyBasis,
  binding: Binding,
  at: { readonly namespace: string; readonly tools: AdmissionTools },
): Promise<readonly (ApiObject | undefined)[]> {
  const { paramKind } = policy;
  const { paramRef } = binding;
  if (paramKind === undefined || paramRef === undefined) return [undefined];
  const served = servedParams(paramKind, at.tools);
  checkListed(served, paramKind);
  const namespace = namespaceOf(served, paramRef.namespace, at.namespace);
  const { name, selector, onNone } = paramRef;
  const cache = at.tools.caches.of(served.def);
  const isConverted = served.def.behavior.converter !== undefined;
  const isChosen = (labels: EntryIndex['labels']) =>
    selector === undefined || selector.matches(labels);
  let params: readonly Entry[];
  if (name !== '') {
    const entry = await cache.get(objectKey(namespace, name), undefined);
    params = entry === undefined ? [] : [entry];
  } else {
    const list = await cache.list({
      namespace,
      // A conversion webhook may change labels, so filter after the conversion.
      filter: isConverted ? undefined : ({ labels }) => isChosen(labels),
    });
    const shown = await entriesIn(served.def, served.version, [...list.entries()]);
    params = isConverted ? shown.filter(({ index }) => isChosen(index.labels)) : shown;
  }
  if (params.length === 0 && onNone === 'Deny') {
    throw new ConfigurationError(
      'no params found for policy binding with `Deny` parameterNotFoundAction',
    );
  }
  const shown = await entriesIn(served.def, served.version, params);
  const kind = convertedKind(served.def, served.version);
  const { clock } = at.tools;
  const slices = new Slices(clock);
  const objects: ApiObject[] = [];
  for (const entry of shown) {
    if (slices.over) await slices.pause();
    const parsed = parsedAt(paceFor(clock, entry.json.length), entry);
    if (parsed instanceof Promise) await parsed;
    objects.push(objectIn(kind, served.version, entry));
  }
  return objects;
}

/** Throws ConfigurationError for a kind without stored objects, such as a review. */
function checkListed({ def }: Served, { apiVersion, kind }: ParamKind): void {
  if (def.verbs.includes('list')) return;
  const shown = `&ParamKind{APIVersion:${apiVersion},Kind:${kind},}`;
  throw new ConfigurationError(`paramKind kind \`${shown}\` not yet synced to use for admission`);
}

function namespaceOf({ def }: Served, named: string, own: string): string {
  if (def.scope === 'Cluster') {
    if (named === '') return '';
    throw new ConfigurationError(
      'paramRef.namespace must not be provided for a cluster-scoped `paramKind`',
    );
  }
  if (named !== '' || own !== '') return named === '' ? own : named;
  throw new ConfigurationError(
    'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
  );
}

/**
 * The served version in which a request matches; undefined if it does not. Throws 404 when its
 * namespace is gone.
 */
async function matchedForm(
  match: MatchResources,
  at: ReviewedRequest,
): Promise<Served | undefined> {
  const { call, facts, tools } = at;
  if (!selectsObject(match.objectSelector, call)) return undefined;
  if (formByRules(match.excluded, match.matchPolicy, at) !== undefined) return undefined;
  const form =
    match.rules.length === 0 ? call.target : formByRules(match.rules, match.matchPolicy, at);
  if (form === undefined) return undefined;
  const { objects } = tools;
  const isSelected = await selectsNamespace(match.namespaceSelector, { call, facts, objects });
  return isSelected ? form : undefined;
}

/** A policy to evaluate for a request, through one of its bindings. */
export interface Invocation {
  readonly policy: PolicyBasis;
  readonly binding: Binding;
  /** How the object is served in the version that the policy's rules name. */
  readonly form: Served;
  /** Evaluated one by one; undefined for a policy without parameters. */
  readonly params: readonly (ApiObject | undefined)[];
}

/** An unusable policy or binding whose failure policy is Fail. */
export interface Misconfigured {
  readonly policy: PolicyBasis;
  readonly binding: Binding | undefined;
  readonly message: string;
}

/** Whether a policy or binding is unusable. */
export const isMisconfigured = (step: Invocation | Misconfigured): step is Misconfigured =>
  'message' in step;

/** The invocations for a request and what is unusable, in the order of policies and bindings. */
export async function invocationsOf(
  hooks: readonly PolicyHook[],
  reviewed: ReviewedRequest,
): Promise<readonly (Invocation | Misconfigured)[]> {
  const steps: (Invocation | Misconfigured)[] = [];
  const attempt = async <T>(
    at: Pick<Misconfigured, 'policy' | 'binding'>,
    step: () => Promise<T>,
  ): Promise<T | undefined> => {
    try {
      return await step();
    } catch (error) {
      const isTheirs = error instanceof ConfigurationError || error instanceof StatusError;
      if (!isTheirs) throw error;
      const subject = at.binding === undefined ? 'policy' : 'binding';
      const message = `failed to configure ${subject}: ${error.message}`;
      if (at.policy.failurePolicy === 'Fail') steps.push({ ...at, message });
      return undefined;
    }
  };
  const slices = new Slices(reviewed.tools.clock);
  for (const { policy, bindings } of hooks) {
    if (slices.over) await slices.pause();
    const form = await attempt({ policy, binding: undefined }, async () => {
      const matched = await matchedForm(policy.match, reviewed);
      const { paramKind } = policy;
      if (matched !== undefined && paramKind !== undefined) servedParams(paramKind, reviewed.tools);
      return matched;
    });
    if (form === undefined) continue;
    for (const binding of bindings) {
      if (slices.over) await slices.pause();
      const params = await attempt({ policy, binding }, () =>
        boundParams(policy, binding, reviewed),
      );
      if (params !== undefined) steps.push({ policy, binding, form, params });
    }
  }
  return steps;
}

async function boundParams(
  policy: PolicyBasis,
  binding: Binding,
  reviewed: ReviewedRequest,
): Promise<Invocation['params'] | undefined> {
  const { match } = binding;
  if (match !== undefined && (await matchedForm(match, reviewed)) === undefined) return undefined;
  const { facts, tools } = reviewed;
  return paramsOf(policy, binding, { namespace: facts.namespace, tools });
}

/** The objects of a request in one served version. */
interface ConvertedObjects {
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
}

/** The variables of expressions about a request, in one served version. */
export class PolicySubject {
  readonly #reviewed: ReviewedRequest;
  readonly #converted = new Map<string, Promise<ConvertedObjects>>();
  #namespace: Promise<JsonObject | undefined> | undefined;

  constructor(reviewed: ReviewedRequest) {
    this.#reviewed = reviewed;
  }

  /**
   * The variables of expressions without the policy's own. Throws UnconvertibleError, and 404 for a
   * missing namespace.
   */
  async variables(form: Served, params: ApiObject | undefined): Promise<Map<string, Value>> {
    const { call, facts, tools } = this.#reviewed;
    const { def, version } = form;
    const resource = { group: def.group, version: version.version, resource: def.resource };
    const kind = kindFor(def, version, facts.subresource);
    const request = requestFields({ call, facts, resource, kind }, tools.dialect);
    const { object, old } = await this.#in(form);
    this.#namespace ??= this.#readNamespace();
    const namespaceObject = await this.#namespace;
    const { user } = call.context;
    const inputs = { object, old, request, namespaceObject, params, user, facts };
    const costs = tools.isOn('StrictCostEnforcementForVAP') ? 'counted' : 'waived';
    return requestVariables(inputs, tools, { costs });
  }

  /** The object of the request in a served version. Throws UnconvertibleError. */
  async objectIn(form: Served): Promise<ApiObject | undefined> {
    return (await this.#in(form)).object;
  }

  /** Converts once for each version, also if that fails. */
  #in(form: Served): Promise<ConvertedObjects> {
    const key = `${form.def.group}/${form.version.version}/${form.def.resource}`;
    const converted = this.#converted.get(key) ?? this.#convert(form);
    this.#converted.set(key, converted);
    return converted;
  }

  async #convert(form: Served): Promise<ConvertedObjects> {
    const { call, tools } = this.#reviewed;
    const convert = async (object: ApiObject | undefined) =>
      object === undefined ? undefined : convertTo(object, form, tools);
    try {
      const [object, old] = await Promise.all([convert(call.object), convert(call.old)]);
      return { object, old };
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      const { message } = error.cause instanceof ConversionFailure ? error.cause : error;
      throw new UnconvertibleError(message);
    }
  }

  /** The fields of the namespace that expressions may read; a Namespace itself has none here. */
  async #readNamespace(): Promise<JsonObject | undefined> {
    const { facts, tools } = this.#reviewed;
    const isNamespace = facts.kind.group === '' && facts.kind.kind === 'Namespace';
    if (facts.namespace === '' || isNamespace) return undefined;
    const at = { namespace: '', name: facts.namespace };
    const namespaceObject = await tools.objects.get('namespaces', at);
    if (namespaceObject === undefined)
      throw notFound({ group: '', resource: 'namespaces' }, facts.namespace);
    const {
      managedFields: _,
      ownerReferences: __,
      selfLink: ___,
      ...metadata
    } = namespaceObject.metadata;
    const { spec, status } = namespaceObject;
    return { metadata, spec: objectOf(spec), status: objectOf(status) };
  }
}
