import { availableCondition, numberAt, objectAt, objectsAt, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type JsonObject,
  jsonObject,
  member,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { ServiceReference } from '../webhooks/service-address.ts';

/** The user as whom this server calls other servers on its own behalf. */
export const aggregator: UserInfo = {
  name: 'system:kube-aggregator',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

/** The registration of a group version, as an APIService declares it. */
export interface ApiRegistration {
  /** The name of the APIService: `v1.metrics.example.com`. */
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
  readonly service: ServiceReference;
  /** The CA bundle in PEM; empty for the host's CAs. */
  readonly caPem: string;
  /** Whether the server's certificate is verified. */
  readonly verifies: boolean;
  /** Whether the APIService has the condition `Available`. */
  readonly isAvailable: boolean;
}

/** A group version that another server serves. */
export interface RemoteApi extends ApiRegistration {
  readonly remote: RemoteServer;
}

const defaultPort = 443;

/** Reads an APIService. A member that is missing or has another type counts as empty. */
export function registrationOf(object: ApiObject): ApiRegistration {
  const spec = objectAt(jsonObject(object), 'spec') ?? {};
  const service = objectAt(spec, 'service');
  return {
    name: object.metadata.name ?? '',
    group: textAt(spec, 'group'),
    version: textAt(spec, 'version'),
    groupPriorityMinimum: numberAt(spec, 'groupPriorityMinimum'),
    versionPriority: numberAt(spec, 'versionPriority'),
    remote: service === undefined ? undefined : remoteOf(object, { spec, service }),
  };
}

function remoteOf(
  object: ApiObject,
  { spec, service }: Readonly<Record<'spec' | 'service', JsonObject>>,
): RemoteServer {
  return {
    service: {
      namespace: textAt(service, 'namespace'),
      name: textAt(service, 'name'),
      port: numberAt(service, 'port') || defaultPort,
    },
    caPem: Buffer.from(textAt(spec, 'caBundle'), 'base64').toString('latin1'),
    verifies: member(spec, 'insecureSkipTLSVerify') !== true,
    isAvailable: conditionOf(object)?.['status'] === 'True',
  };
}

/** Whether another server serves the group version. */
export function isRemote(registration: ApiRegistration): registration is RemoteApi {
  return registration.remote !== undefined;
}

/** The availability condition of an APIService; undefined if it has none. */
export function conditionOf(object: ApiObject): JsonObject | undefined {
  return conditionsOf(object).find((condition) => condition['type'] === availableCondition);
}

/** All conditions of an APIService. */
export function conditionsOf(object: ApiObject): readonly JsonObject[] {
  return objectsAt(jsonObject(object), 'status', 'conditions');
}

/** The name that the certificate of a Service must match: `name.namespace.svc`. */
export function serverNameOf({ namespace, name }: ServiceReference): string {
  return `${name}.${namespace}.svc`;
}

/**
 * The discovery path of a group version: `/apis/<group>/<version>`, or `/api/v1` for the core
 * group.
 */
export function discoveryPathOf({ group, version }: ApiRegistration): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}
