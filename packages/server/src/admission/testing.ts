import { builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  createMetricRegistry,
  type Dialect,
  dialectOf,
  type UserInfo,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { createCatalogue } from '../catalogue/catalogue.ts';
import type { AdmissionCall, WriteContext } from '../registry/contract.ts';
import { serverContext } from '../registry/registry.ts';
import { QuotaLedger } from './quota/quota-ledger.ts';
import type { AdmissionTools } from './tools.ts';

/** Helpers for the tests of admission. */

const { origin: _, ...clientContext } = serverContext;

/** The dialect of the kinds and calls below. */
export const dialect: Dialect = dialectOf('svc');
const { snapshot } = createCatalogue(builtinKinds(dialect));

/** A built-in kind, by its resource and the stem of its group; throws if there is none. */
function builtinKind(resource: string, stem = ''): ResourceDef {
  const resolved = snapshot().builtin(stem === '' ? '' : dialect.group(stem), resource);
  if (resolved === undefined) throw new Error(`there is no resource ${resource} in "${stem}"`);
  return resolved;
}

/** A write in a test; by default a CREATE by an ordinary user. */
export interface WriteFixture {
  /** `pods`, or `leases.coordination` with the stem of the group. */
  readonly resource: string;
  readonly operation?: AdmissionCall['operation'];
  readonly subresource?: string;
  /** `default` for namespaced kinds. */
  readonly namespace?: string;
  /** The object's own name when absent. */
  readonly name?: string;
  readonly object?: ApiObject;
  readonly old?: ApiObject;
  readonly user?: Partial<UserInfo>;
  readonly context?: Partial<WriteContext>;
}

/** The call that admission plugins receive for a write. */
export function admissionCall(write: WriteFixture): AdmissionCall {
  const { operation = 'CREATE', subresource = '', object, old } = write;
  const [resource = '', stem = ''] = write.resource.split('.');
  const def = builtinKind(resource, stem);
  const version = def.versions.find(({ served }) => served);
  if (version === undefined) throw new Error(`${write.resource} is not served`);
  const namespace = write.namespace ?? (def.scope === 'Namespaced' ? 'default' : '');
  const name = write.name ?? (object ?? old)?.metadata.name ?? '';
  const user = { name: 'ada', uid: '', groups: [], extra: {}, ...write.user };
  return {
    operation,
    target: { def, version, namespace, name, subresource },
    context: { ...clientContext, user, ...write.context },
    name,
    object,
    old,
    attempt: 1,
  };
}

/** Objects by resource, which is named as in `ObjectReader`. */
export type StoredObjects = Readonly<Record<string, readonly ApiObject[]>>;

/**
 * Admission tools with objects in memory. Authorization allows everything and all features are off;
 * `change` replaces parts. Parts that need a running server throw on use.
 */
export function admissionTools(
  stored: StoredObjects = {},
  change: Partial<AdmissionTools> = {},
): AdmissionTools {
  const clock = new FakeClock();
  const absent = (part: string): never => {
    throw new Error(`this test has no ${part}`);
  };
  const listed = (resource: string, namespace: string) =>
    (stored[resource] ?? []).filter(
      ({ metadata }) => namespace === '' || metadata.namespace === namespace,
    );
  const tools: AdmissionTools = {
    dialect,
    clock,
    objects: {
      get: async (resource, { namespace, name }) =>
        (stored[resource] ?? []).find(
          ({ metadata }) => metadata.name === name && (metadata.namespace ?? '') === namespace,
        ),
      list: async (resource, namespace) => listed(resource, namespace),
      async *each(resource, namespace) {
        yield* listed(resource, namespace);
      },
    },
    settings: { notReadyTolerationSeconds: 300, unreachableTolerationSeconds: 300 },
    configurations: {},
    builtin: (stem, resource) => snapshot().builtin(dialect.group(stem), resource),
    defOfKind: (apiVersion, kind) =>
      snapshot().defs.find(
        (def) =>
          def.kind === kind &&
          def.versions.some(
            ({ version }) =>
              apiVersion === (def.group === '' ? version : `${def.group}/${version}`),
          ),
      ),
    ledger: new QuotaLedger(clock),
    snapshot,
    authorize: () => ({ decision: 'allow', reason: '' }),
    metrics: createMetricRegistry({ release: '1.32', hidden: 'hidden' }),
    isOn: () => false,
    webhooks: { post: async () => absent('webhooks') },
    webhooksOf: () => absent('webhooks'),
    log: () => {},
    registry: () => absent('registry'),
    get caches() {
      return absent('watch caches');
    },
  };
  return Object.defineProperties(tools, Object.getOwnPropertyDescriptors(change));
}

/** The message of a plugin's refusal, without the frame; undefined if it admits the call. */
export async function refusalOf(
  run: ((call: AdmissionCall) => Promise<void> | undefined) | undefined,
  call: AdmissionCall,
): Promise<string | undefined> {
  try {
    await run?.(call);
    return undefined;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return error.message.replace(/^\S+ "[^"]*" is forbidden: /, '');
  }
}
