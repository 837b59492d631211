import type { JsonObject } from '@wheelhouse/machinery';
import { eventually, type TestServer } from '../support/harness.ts';
import {
  type Received,
  type ReceivedBody,
  type Reply,
  type ReviewRequest,
  startWebhookService,
} from '../support/webhook-service.ts';

/** The group of admission's own objects in the tests' dialect. */
export const registration = 'admissionregistration.svc.io';
export const configurations = {
  mutating: `/apis/${registration}/v1/mutatingwebhookconfigurations`,
  validating: `/apis/${registration}/v1/validatingwebhookconfigurations`,
} as const;

/** The part of a webhook's response besides its verdict. */
export type Response = Record<string, unknown>;

/** An admission webhook over TLS, with functions that configure a server to call it. */
export interface AdmissionService {
  readonly url: string;
  readonly caBundle: string;
  /** A bundle that contains only the service's own certificate. */
  readonly leafBundle: string;
  /** The reviews that a path received, in order. */
  at(path: string): readonly ReceivedBody[];
  /** All received calls, in order. */
  readonly received: readonly Received[];
  /** Sets the answer to calls of a path: a part of the response, or a whole answer. */
  answer(path: string, make: (request: ReviewRequest) => Response): void;
  reply(path: string, make: (call: Received) => Reply): void;
  /** Called when a client disconnects before it is answered. */
  onGone(callback: () => void): void;
  forget(): void;
  stop(): Promise<void>;
}

/** Starts a service that allows everything unless a path has another answer. */
export async function startAdmissionService(hosts?: readonly string[]): Promise<AdmissionService> {
  const service = await startWebhookService(hosts);
  const answers = new Map<string, (call: Received) => Reply>();
  const pathOf = (call: Received) => call.path.split('?', 1)[0] ?? '';
  service.answer = (call) =>
    (answers.get(pathOf(call)) ?? ((review) => reviewed(review, {})))(call);
  return {
    url: service.url,
    caBundle: Buffer.from(service.caPem).toString('base64'),
    leafBundle: Buffer.from(service.leafPem).toString('base64'),
    at: (path) => service.received.filter((call) => pathOf(call) === path).map(({ body }) => body),
    received: service.received,
    answer: (path, make) =>
      void answers.set(path, (call) => reviewed(call, make(call.body.request))),
    reply: (path, make) => void answers.set(path, make),
    onGone(callback) {
      service.onGone = callback;
    },
    forget() {
      service.received.length = 0;
      answers.clear();
    },
    stop: service.stop,
  };
}

function reviewed(call: Received, response: Response): Reply {
  const { apiVersion, kind, request } = call.body;
  return { apiVersion, kind, response: { uid: request.uid, allowed: true, ...response } };
}

/** A response with a patch. */
export function patching(operations: readonly JsonObject[]): Response {
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
  return { patchType: 'JSONPatch', patch };
}

/** A rule for writes of ConfigMaps. */
export const configMapRule: JsonObject = {
  operations: ['*'],
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['configmaps'],
};

/** A webhook of a configuration, at a path of the service and for one namespace only. */
export function webhook(
  service: Pick<AdmissionService, 'url' | 'caBundle'>,
  at: { readonly name?: string; readonly path: string; readonly namespace?: string } & Record<
    string,
    unknown
  >,
): JsonObject {
  const { name = 'a.example.com', path, namespace, ...more } = at;
  const label = 'svc.io/metadata.name';
  const selector = namespace === undefined ? {} : { matchLabels: { [label]: namespace } };
  return {
    name,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { url: service.url + path, caBundle: service.caBundle },
    rules: [configMapRule],
    namespaceSelector: selector,
    ...more,
  } as JsonObject;
}

let made = 0;

/** Creates a configuration of webhooks; returns its name and a function that removes it. */
export async function configure(
  server: TestServer,
  type: keyof typeof configurations,
  webhooks: readonly JsonObject[],
  name = `c${++made}`,
): Promise<{ readonly name: string; remove(): Promise<void> }> {
  const kind = type === 'mutating' ? 'Mutating' : 'Validating';
  const body = {
    apiVersion: `${registration}/v1`,
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks,
  };
  const answer = await server.post(configurations[type], body);
  if (answer.status !== 201) throw new Error(`configuration: ${answer.status} ${answer.text}`);
  return {
    name,
    async remove() {
      await server.remove(`${configurations[type]}/${name}`);
    },
  };
}

/** Configures webhooks for a test's own namespace, and removes them between tests. */
export function hooksOf(
  place: () => {
    readonly server: TestServer;
    readonly service: AdmissionService;
    readonly namespace: string;
  },
): {
  /** Returns the configuration's name. */
  hooked(
    type: keyof typeof configurations,
    ...hooks: Parameters<typeof webhook>[1][]
  ): Promise<string>;
  /** Registers a cleanup for the next `unhook`. */
  later(cleanup: () => Promise<void>): void;
  /** Removes the configurations. */
  unhook(): Promise<void>;
} {
  const cleanups: (() => Promise<void>)[] = [];
  return {
    async hooked(type, ...hooks) {
      const { server, service, namespace } = place();
      const made = hooks.map((hook) => webhook(service, { namespace, ...hook }));
      const { name, remove } = await configure(server, type, made);
      cleanups.push(remove);
      return name;
    },
    later: (cleanup) => void cleanups.push(cleanup),
    async unhook() {
      for (const cleanup of cleanups.splice(0)) await cleanup();
    },
  };
}

/** Waits until writes of ConfigMaps are sent to the webhook at the path. Uses dry runs. */
export async function awaitWebhook(
  server: TestServer,
  at: { readonly service: AdmissionService; readonly path: string; readonly namespace: string },
): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'probe-' } };
  const query = '?dryRun=All';
  await eventually(async () => {
    await server.post(`/api/v1/namespaces/${at.namespace}/configmaps${query}`, body);
    return at.service.at(at.path).length > 0;
  }, `the webhook at ${at.path} was not asked`);
}
