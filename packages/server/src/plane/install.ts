import { type Dialect, errorText, isObject, pause, programClock } from '@wheelhouse/machinery';
import { type KindFinder, objectPath, referenceOf, UnknownKind } from './plane-client.ts';
import { isDefinition, type Manifest, ManifestError, otherDialect } from './sources.ts';
import type { ManifestObject, PlaneClient } from './types.ts';

/** The dependencies of an installation. */
interface Installer {
  readonly dialect: Dialect;
  readonly kinds: KindFinder;
  /** Redirects webhooks that name a Service; returns other objects unchanged. */
  readonly redirect: (object: ManifestObject) => ManifestObject;
}

const fieldManager = 'wheelhouse';
const applyType = 'application/apply-patch+yaml';
/** Maximum number of definitions that are installed concurrently. */
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
  const [definitions, others] = split(manifests, ({ object }) =>
    isDefinition(object, installer.dialect),
  );
  const [namespaces, rest] = split(others, ({ object }) => isNamespace(object));
  for (let from = 0; from < definitions.length; from += parallelMax) {
    const batch = definitions.slice(from, from + parallelMax);
    await Promise.all(
      batch.map(async (definition) => {
        await applyManifest(client, definition, installer);
        results.set(definition, await untilEstablished(client, definition, installer.kinds));
      }),
    );
  }
  for (const manifest of [...namespaces, ...rest]) {
    results.set(manifest, await applyManifest(client, manifest, installer));
  }
  return manifests.map((manifest) => results.get(manifest) as ManifestObject);
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

async function applyManifest(
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
    const hint = cause instanceof UnknownKind ? otherDialect(object, installer.dialect) : '';
    const what = `${object.kind} ${object.metadata?.name ?? ''}`;
    const message = `${what} cannot be applied: ${errorText(cause)}${hint}`;
    throw new ManifestError({ ...placeParts(place), message, cause });
  }
}

/** The file and the line of a manifest's place. */
function placeParts(place: string): { file?: string; line?: number } {
  const [, file, line] = /^(.*):(\d+)$/.exec(place) ?? [];
  if (file !== undefined) return { file, line: Number(line) };
  const [, onlyLine] = /^line (\d+)$/.exec(place) ?? [];
  return onlyLine === undefined ? {} : { line: Number(onlyLine) };
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
      const reason = names?.status === 'False' ? names.message : 'it was not established in time';
      const message = `definition ${object.metadata?.name} cannot be served: ${reason}`;
      throw new ManifestError({ ...placeParts(place), message });
    }
    await pause(programClock, { ms: pollMs });
  }
}

function conditionsOf(object: ManifestObject) {
  const { status } = object;
  const list = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  const conditions = list as { type: string; status: string; message?: string }[];
  return new Map(conditions.map((condition) => [condition.type, condition]));
}
