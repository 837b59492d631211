import type { JsonObject } from '@wheelhouse/machinery';

/** The Kubernetes release that this server implements. */
export const apiRelease = { major: '1', minor: '32', patch: '0' } as const;

/**
 * The body of `/version` (API-11). Clients compare its major and minor version with their own.
 *
 * @param emulatedMinor the minor version of the emulated release, which is added (VER-2)
 */
export function versionDocument(emulatedMinor?: number): JsonObject {
  const { major, minor, patch } = apiRelease;
  return {
    major,
    minor,
    ...(emulatedMinor === undefined
      ? {}
      : { emulationMajor: major, emulationMinor: String(emulatedMinor) }),
    gitVersion: `v${major}.${minor}.${patch}+wheelhouse`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: 'node',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  };
}
