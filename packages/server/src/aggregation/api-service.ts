import { availableCondition } from '@wheelhouse/kinds';
import {
  type ApiObject,
  isObject,
  type JsonObject,
  jsonObject,
  member,
} from '@wheelhouse/machinery';

/** Which port of which Service another server stands behind. */
export interface ServicePlace {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** What an APIService says of a group version. */
export interface ApiRegistration {
  /** The APIService's own name: `v1.metrics.example.com`. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
  /** Undefined where this server answers itself. */
  readonly remote: RemoteServer | undefined;
}

/** Another server, as its APIService describes it. */
export interface RemoteServer {
  readonly service: ServicePlace;
  /** The authorities to trust, in PEM; those of the host when empty. */
  readonly caPem: string;
  readonly verifies: boolean;
  /** Whether its APIService's condition says so. */
  readonly isAvailable: boolean;
}

/** A group version that another server answers. */
export interface RemoteApi extends ApiRegistration {
  readonly remote: RemoteServer;
}

const defaultPort = 443;

/** Reads an APIService; what is absent or of another type is as good as empty. */
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

/** Whether another server answers the group version. */
export function isRemote(one: ApiRegistration): one is RemoteApi {
  return one.remote !== undefined;
}

/** The condition of availability. */
export function conditionOf(object: ApiObject): JsonObject | undefined {
  return conditionsOf(object).find((one) => one['type'] === availableCondition);
}

/** All conditions of an APIService. */
export function conditionsOf(object: ApiObject): readonly JsonObject[] {
  const conditions = member(objectIn(object, 'status') ?? {}, 'conditions');
  return Array.isArray(conditions) ? conditions.filter(isObject) : [];
}

/** The name by which a server's certificate must go. */
export function serverNameOf({ namespace, name }: ServicePlace): string {
  return `${name}.${namespace}.svc`;
}

/** `/apis/<group>/<version>`, where a server tells what it serves; `/api/v1` for the core group. */
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
