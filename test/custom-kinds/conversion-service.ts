import type { ApiObject, JsonObject, JsonValue, ObjectMeta } from '@wheelhouse/machinery';
import { eventually, type ResponseBody, type TestServer } from '../support/harness.ts';
import { type Received, type Reply, startWebhookService } from '../support/webhook-service.ts';
import { establish, redefine, versionOf } from './custom-kinds.ts';

type Numbers = { num1?: number; num2?: number };

/** The members of the spec that the versions spell differently. */
interface MultiSpec extends JsonObject {
  content?: JsonValue | undefined;
  num?: Numbers | undefined;
  contentv2?: JsonValue | undefined;
  numv2?: Numbers | undefined;
}

/** An object of the kind that the service converts; its fields depend on the version. */
export interface CustomObject extends ApiObject {
  metadata: ObjectMeta & { name: string };
  spec?: MultiSpec;
}

/** Converts one object to another version; may modify it. Throws to fail the review. */
export type Convert = (object: CustomObject, desired: string) => object;

/** A conversion webhook over TLS. */
export interface ConversionService {
  readonly url: string;
  readonly caBundle: string;
  /** A bundle that contains only the service's own certificate. */
  readonly leafBundle: string;
  /** Calls since `forget`, in order. */
  readonly received: Received[];
  /** The conversion that the service performs from now on, at every path. */
  convert: Convert;
  /** Replies instead of converting; undefined for normal conversion. */
  reply: ((call: Received) => Reply) | undefined;
  /** Objects converted since `forget`, as `name from>to`. */
  asked(): readonly string[];
  forget(): void;
  /** Converts as `swap` does again, and forgets. */
  reset(): void;
  stop(): Promise<void>;
}

/** Starts a webhook that converts as `swap` does. */
export async function startConversionService(
  hosts?: readonly string[],
): Promise<ConversionService> {
  const http = await startWebhookService(hosts);
  const service: ConversionService = {
    url: http.url,
    caBundle: Buffer.from(http.caPem).toString('base64'),
    leafBundle: Buffer.from(http.leafPem).toString('base64'),
    received: http.received,
    convert: swap,
    reply: undefined,
    asked: () =>
      http.received.flatMap(({ body: { request } }) =>
        request.objects.map((object: CustomObject) => {
          const [from, to] = [object.apiVersion, request.desiredAPIVersion].map(nameOf);
          return `${object.metadata.name} ${from}>${to}`;
        }),
      ),
    forget() {
      http.received.length = 0;
    },
    reset() {
      service.convert = swap;
      service.reply = undefined;
      service.forget();
    },
    stop: http.stop,
  };
  http.answer = (call) => (service.reply ?? ((review) => converted(review, service.convert)))(call);
  return service;
}

const nameOf = (apiVersion: string) => apiVersion.split('/').at(-1);

/** The answer to a review, with its objects converted by a function. */
export function converted({ body }: Received, convert: Convert): Reply {
  const { apiVersion, kind, request } = body;
  const { uid, desiredAPIVersion } = request;
  try {
    const convertedObjects = request.objects.map((object: CustomObject) =>
      convert(object, desiredAPIVersion),
    );
    const result = { status: 'Success' };
    return { apiVersion, kind, response: { uid, convertedObjects, result } };
  } catch (error) {
    const result = { status: 'Failure', message: (error as Error).message };
    return { apiVersion, kind, response: { uid, result } };
  }
}

/**
 * Converts between v1beta1, v1alpha1 (`spec.content`, `num`), and v1beta2 (`spec.contentv2`,
 * `numv2`).
 */
export function swap(object: CustomObject, desired: string): CustomObject {
  const isNew = (apiVersion: string) => nameOf(apiVersion) === 'v1beta2';
  const renamed = { ...object, apiVersion: desired };
  if (object.spec === undefined || isNew(object.apiVersion) === isNew(desired)) return renamed;
  const { content, num, contentv2, numv2, ...rest } = object.spec;
  const spec = isNew(desired)
    ? { ...rest, contentv2: content, numv2: num }
    : { ...rest, content: contentv2, num: numv2 };
  return { ...renamed, spec };
}

const key = { type: 'object', properties: { key: { type: 'string' } } };
const nums = {
  type: 'object',
  properties: { num1: { type: 'integer' }, num2: { type: 'integer' } },
};
const bool = { type: 'boolean' };

function schemaWith(own: string, fields: object): object {
  const names = ['v1alpha1', 'v1beta1', 'v1beta2'];
  const properties = Object.fromEntries(
    names.map((name) => [name, name === own ? { ...bool, default: true } : bool]),
  );
  const status = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const spec = { type: 'object', properties: fields };
  const all = { spec, status, defaults: { type: 'object', properties } };
  return { type: 'object', properties: all };
}

const subresources = {
  status: {},
  scale: { specReplicasPath: '.spec.num.num1', statusReplicasPath: '.status.num1' },
};
const subresourcesV2 = {
  status: {},
  scale: { specReplicasPath: '.spec.numv2.num1', statusReplicasPath: '.status.num1' },
};

/** The versions that `swap` converts; the first is the stored one. */
export function multiVersions() {
  const old = { content: key, num: nums };
  const recent = { contentv2: key, numv2: nums };
  const columns = (path: string) => ({
    additionalPrinterColumns: [{ name: 'Key', type: 'string', jsonPath: `.spec.${path}.key` }],
    selectableFields: [{ jsonPath: `.spec.${path}.key` }],
  });
  const more = { subresources, ...columns('content') };
  return [
    versionOf('v1beta1', schemaWith('v1beta1', old), { ...more, storage: true }),
    versionOf('v1alpha1', schemaWith('v1alpha1', old), more),
    versionOf('v1beta2', schemaWith('v1beta2', recent), {
      subresources: subresourcesV2,
      ...columns('contentv2'),
    }),
  ];
}

/** An object of the kind in a response. */
export type Converted = ResponseBody & {
  spec: {
    content: { key: string };
    num: { num1: number };
    contentv2: { key: string };
    numv2: { num1: number };
  };
};

/** A kind with those versions, converted by the service. */
export interface MultiKind {
  readonly group: string;
  readonly name: string;
  readonly kind: string;
  /** The collection in a version, in namespace `default` unless another one is given. */
  at(version: string, namespace?: string): string;
  /** An object for a request. */
  object(version: string, name: string, more?: object): CustomObject;
}

export const reviewVersions = ['v1', 'v1beta1'];

/** The conversion of a definition that calls the service. */
export function conversionBy(
  service: Pick<ConversionService, 'url' | 'caBundle'>,
  more: { readonly versions?: readonly string[]; readonly clientConfig?: object } = {},
): object {
  const { url, caBundle } = service;
  const clientConfig = more.clientConfig ?? { url: `${url}/convert`, caBundle };
  const conversionReviewVersions = more.versions ?? reviewVersions;
  return { strategy: 'Webhook', webhook: { conversionReviewVersions, clientConfig } };
}

let kinds = 0;

/** Establishes a kind in its own group. */
export async function establishMulti(
  server: TestServer,
  conversion: object,
  versions: readonly object[] = multiVersions(),
): Promise<MultiKind> {
  kinds += 1;
  const group = `multi${kinds}.example.com`;
  const [plural, kind] = ['multis', 'Multi'];
  await establish(server, { group, plural, kind, versions, more: { conversion } });
  return {
    group,
    name: `${plural}.${group}`,
    kind,
    at: (version, namespace = 'default') =>
      `/apis/${group}/${version}/namespaces/${namespace}/${plural}`,
    object(version, name, more = {}) {
      const [content, num] = [{ key: 'value' }, { num1: 1, num2: 1000000 }];
      const spec = version === 'v1beta2' ? { contentv2: content, numv2: num } : { content, num };
      return { apiVersion: `${group}/${version}`, kind, metadata: { name }, spec, ...more };
    },
  };
}

/** Changes the stored version, and waits until the change takes effect. */
export async function storeAs(
  server: TestServer,
  { name, group, at, object }: MultiKind,
  version: string,
): Promise<void> {
  await redefine(server, name, (spec) => {
    for (const entry of spec.versions) entry.storage = entry.name === version;
  });
  // Discovery shows the change; writes in that version no longer need the webhook.
  await eventually(async () => {
    const { body } = await server.get(`/apis/${group}`);
    const probe = await server.post(`${at(version)}?dryRun=All`, object(version, 'probe'));
    return body.kind === 'APIGroup' && probe.status === 201;
  }, `${version} to be stored`);
}
