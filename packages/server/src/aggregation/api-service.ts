import { availableCondition } from '@wheelhouse/kinds';
import {
  type ApiObject,
  isObject,
  type JsonObject,
  jsonObject,
  member,
} from '@wheelhouse/machinery';

/** The Service port of another server. */
export interface ServicePlace {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** The content of an APIService. */
export interface ApiRegistration {
  /** The APIService's own name: `v1.metrics.example.com`. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
  /** Undefined if this server serves the group version itself. */
  readonly remote: RemoteServer | undefined;
}

/** Another server, as its APIService describes it. */
export interface RemoteServer {
  readonly service: ServicePlace;
  /** CA bundle in PEM; the host's CAs when empty. */
  readonly caPem: string;
  readonly verifies: boolean;
  /** Whether the APIService's condition says that it is available. */
  readonly isAvailable: boolean;
}

/** A group version that another server serves. */
export interface RemoteApi extends ApiRegistration {
  readonly remote: RemoteServer;
}

const defaultPort = 443;

/** Reads an APIService; missing members and those of another type count as empty. */
export function registrationOf(object: ApiObject): ApiRegistration {
  const spec = objectIn(object, 'spec') ?? {};
  const service = objectIn(spec, 'service');
  return {
    name: object.metadata.name ?? '',
    group: text(spec, 'group'),
    version: text(spec, 'version'),
    groupPriorityMinimum: number(spec, 'groupPriorityMinimum'),
    versionPriority: number(spec, 'versionPriority'),
    remote: service === undefined ? undefined : remoteOf(object, { spec, service }),
  };
}

function remoteOf(
  object: ApiObject,
  { spec, service }: Readonly<Record<'spec' | 'service', JsonObject>>,
): RemoteServer {
  return {
    service: {
      namespace: text(service, 'namespace'),
      name: text(service, 'name'),
      port: number(service, 'port') || defaultPort,
    },
    caPem: Buffer.from(text(spec, 'caBundle'), 'base64').toString('latin1'),
    verifies: member(spec, 'insecureSkipTLSVerify') !== true,
    isAvailable: conditionOf(object)?.['status'] === 'True',
  };
}

/** Whether another server serves the group version. */
export function isRemote(one: ApiRegistration): one is RemoteApi {
  return one.remote !== undefined;
}

/** The availability condition. */
export function conditionOf(object: ApiObject): JsonObject | undefined {
  return conditionsOf(object).find((one) => one['type'] === availableCondition);
}

/** All conditions of an APIService. */
export function conditionsOf(object: ApiObject): readonly JsonObject[] {
  const conditions = member(objectIn(object, 'status') ?? {}, 'conditions');
  return Array.isArray(conditions) ? conditions.filter(isObject) : [];
}

/** The name that a server's certificate must match. */
export function serverNameOf({ namespace, name }: ServicePlace): string {
  return `${name}.${namespace}.svc`;
}

/**
 * `/apis/<group>/<version>`, the discovery path of a group version; `/api/v1` for the core group.
 */
export function discoveryPathOf({ group, version }: ApiRegistration): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

function objectIn(object: object, name: string): JsonObject | undefined {
  const value = member(jsonObject(object), name);
  return isObject(value) ? value : undefined;
}

function text(object: JsonObject, name: string): string {
  const value = member(object, name);
  return typeof value === 'string' ? value : '';
}

function number(object: JsonObject, name: string): number {
  const value = member(object, name);
  return typeof value === 'number' ? value : 0;
}
