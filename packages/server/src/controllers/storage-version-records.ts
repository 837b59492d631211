import { apiVersionIn, type ResourceDef, type Stored, textAt } from '@wheelhouse/kinds';
import type {
  ServerStorageVersion,
  StorageVersion,
  StorageVersionCondition,
} from '@wheelhouse/kinds/types/apiserverinternal/v1alpha1';
import { formatTime, type JsonObject } from '@wheelhouse/machinery';
import type { ObjectWriter } from './tools.ts';

/** The versions of one server for a resource. */
interface ServerVersions {
  readonly apiServerID: string;
  readonly encodingVersion: string;
  readonly decodableVersions: readonly string[];
  readonly servedVersions: readonly string[];
}

/** A resource, with all versions that it has ever had. */
interface RecordedResource {
  readonly def: ResourceDef;
  readonly allVersions: readonly string[];
}

/**
 * Records the version in which this server stores each resource in a StorageVersion, beside the
 * records of other servers. Rejects if a write fails.
 */
export async function recordStorageVersions(options: {
  readonly storageVersions: ResourceDef;
  readonly resources: readonly RecordedResource[];
  readonly writer: ObjectWriter;
  readonly serverId: string;
  readonly nowMs: number;
}): Promise<void> {
  const { storageVersions, resources, writer, serverId, nowMs } = options;
  const { apiVersion } = storageVersions.storage;
  for (const resource of resources) {
    const { def } = resource;
    const name = `${def.group === '' ? 'core' : def.group}.${def.resource}`;
    const at = { def: storageVersions, namespace: '', name };
    const own = versionsOf(resource, serverId);
    await writer.create(at, { apiVersion, kind: 'StorageVersion', metadata: { name }, spec: {} });
    await writer.change({ ...at, subresource: 'status' }, (record) => ({
      ...record,
      status: statusWith(record, { own, nowMs }),
    }));
  }
}

function versionsOf({ def, allVersions }: RecordedResource, serverId: string): ServerVersions {
  const served = def.versions
    .filter((versionDef) => versionDef.served)
    .map((version) => apiVersionIn(def, version));
  const { apiVersion } = def.storage;
  return {
    apiServerID: serverId,
    encodingVersion: apiVersion,
    decodableVersions: [...new Set([apiVersion, ...served, ...allVersions])],
    servedVersions: served,
  };
}

/** The status with this server's entry replaced. */
function statusWith(
  record: Stored<StorageVersion>,
  { own, nowMs }: { readonly own: ServerVersions; readonly nowMs: number },
): JsonObject {
  const before = record.status?.storageVersions ?? [];
  const isOwn = (server: Stored<ServerStorageVersion>) =>
    (server.apiServerID ?? '') === own.apiServerID;
  const entry: JsonObject = {
    ...own,
    decodableVersions: [...own.decodableVersions],
    servedVersions: [...own.servedVersions],
  };
  const servers = before.some(isOwn)
    ? before.map((server) => (isOwn(server) ? entry : server))
    : [...before, entry];
  const encodings = new Set(servers.map((server) => textAt(server, 'encodingVersion')));
  const isCommon = encodings.size === 1;
  const condition = {
    type: 'AllEncodingVersionsEqual',
    status: isCommon ? 'True' : 'False',
    reason: isCommon ? 'CommonEncodingVersionSet' : 'CommonEncodingVersionUnset',
    message: isCommon ? 'Common encoding version set' : 'Common encoding version unset',
  };
  const conditions = conditionsWith(record.status?.conditions ?? [], condition, nowMs);
  return {
    storageVersions: servers,
    ...(isCommon ? { commonEncodingVersion: own.encodingVersion } : {}),
    conditions,
  };
}

function conditionsWith(
  conditions: readonly Stored<StorageVersionCondition>[],
  condition: { readonly type: string; readonly status: string } & JsonObject,
  nowMs: number,
): JsonObject[] {
  const old = conditions.find((existing) => existing.type === condition.type);
  const isKept = old?.status === condition.status;
  const since = isKept ? old.lastTransitionTime : formatTime(nowMs);
  const set = { ...condition, lastTransitionTime: since ?? formatTime(nowMs) };
  return [...conditions.filter((existing) => existing !== old), set];
}
