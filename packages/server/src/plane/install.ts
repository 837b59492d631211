import { type Dialect, errorText, isObject, pause, programClock } from '@wheelhouse/machinery';
import { type KindFinder, objectPath, referenceOf, UnknownKind } from './plane-client.ts';
import { isDefinition, type Manifest, ManifestError, otherDialect } from './sources.ts';
import type { ManifestObject, PlaneClient } from './types.ts';

/** The plane as an installation needs it. */
interface Installer {
  readonly dialect: Dialect;
  readonly kinds: KindFinder;
  /** Redirects webhooks that name a Service; returns other objects unchanged. */
  readonly redirect: (object: ManifestObject) => ManifestObject;
}

const fieldManager = 'wheelhouse';
const applyType = 'application/apply-patch+yaml';
/** Definitions installed concurrently. */
const parallelMax = 8;
const establishedWithinMs = 10_000;
const pollMs = 2;

/**
 * Applies objects: definitions first, until they are established, then namespaces, then the rest in
 * order. Rejects with a ManifestError that names the source of the object.
 * @returns the objects as stored, in the order of the manifests
 */
export async function installManifests(
  client: PlaneClient,
  manifests: readonly Manifest[],
  installer: Installer,
): Promise<ManifestObject[]> {
  const results = new Map<Manifest, ManifestObject>();
  const isEarly = (one: Manifest) => isDefinition(one.object, installer.dialect);
  const [early, others] = split(manifests, isEarly);
  const [namespaces, rest] = split(others, ({ object }) => isNamespace(object));
  for (let from = 0; from < early.length; from += parallelMax) {
    const batch = early.slice(from, from + parallelMax);
    await Promise.all(
      batch.map(async (one) => {
        await applyOne(client, one, installer);
        results.set(one, await untilEstablished(client, one, installer.kinds));
      }),
    );
  }
  for (const one of [...namespaces, ...rest]) {
    results.set(one, await applyOne(client, one, installer));
  }
  return manifests.map((one) => results.get(one) as ManifestObject);
}

function isNamespace({ apiVersion, kind }: ManifestObject): boolean {
  return apiVersion === 'v1' && kind === 'Namespace';
}

function split<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  const first: T[] = [];
  const second: T[] = [];
  for (const item of items) (isFirst(item) ? first : second).push(item);
  return [first, second];
}

async function applyOne(
  client: PlaneClient,
  { object, place }: Manifest,
  installer: Installer,
): Promise<ManifestObject> {
  try {
    const reference = referenceOf(object);
    const resource = await installer.kinds.find(object);
    const namespace = resource.namespaced ? { namespace: reference.namespace ?? 'default' } : {};
    const { managedFields: _, ...metadata } = object.metadata ?? {};
    const body = installer.redirect({ ...object, metadata: { ...metadata, ...namespace } });
    return await client.request({
      method: 'PATCH',
      path: objectPath(resource, reference),
      query: { fieldManager, force: 'true' },
      contentType: applyType,
      body,
    });
  } catch (cause) {
    throw refused({ object, place, cause, dialect: installer.dialect });
  }
}

function refused(failed: {
  readonly object: ManifestObject;
  readonly place: string;
  readonly cause: unknown;
  readonly dialect: Dialect;
}): ManifestError {
  const { object, place, cause, dialect } = failed;
  const why = errorText(cause);
  const hint = cause instanceof UnknownKind ? otherDialect(object, dialect) : '';
  const message = `${object.kind} ${object.metadata?.name ?? ''} cannot be applied: ${why}${hint}`;
  return new ManifestError({ ...placeParts(place), message, cause });
}

function placeParts(place: string): { file?: string; line?: number } {
  const [, file, line] = /^(.*):(\d+)$/.exec(place) ?? [];
  if (file !== undefined) return { file, line: Number(line) };
  const [, alone] = /^line (\d+)$/.exec(place) ?? [];
  return alone === undefined ? {} : { line: Number(alone) };
}

/** Waits until a definition's kind is served. Rejects at once if its names are taken. */
async function untilEstablished(
  client: PlaneClient,
  { object, place }: Manifest,
  kinds: KindFinder,
): Promise<ManifestObject> {
  const path = objectPath(await kinds.find(object), referenceOf(object));
  const end = performance.now() + establishedWithinMs;
  for (;;) {
    const current = await client.request({ path });
    const conditions = conditionsOf(current);
    if (conditions.get('Established')?.status === 'True') return current;
    const names = conditions.get('NamesAccepted');
    if (names?.status === 'False' || performance.now() > end) {
      const why = names?.status === 'False' ? names.message : 'it was not established in time';
      const message = `definition ${object.metadata?.name} cannot be served: ${why}`;
      throw new ManifestError({ ...placeParts(place), message });
    }
    await pause(programClock, { ms: pollMs });
  }
}

function conditionsOf(object: ManifestObject) {
  const { status } = object;
  const list = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  const conditions = list as { type: string; status: string; message?: string }[];
  return new Map(conditions.map((one) => [one.type, one]));
}
