/**
 * Everything that the built bundle exports: the command, and what the ES modules of the library and
 * of the presets re-export, so that they start with the bundle's machine code.
 */
export { ApiError } from '@wheelhouse/client';
export { FlagError } from './flags/flags.ts';
export { main } from './main.ts';
export { FaultRuleError } from './plane/checks.ts';
export { startControlPlane } from './plane/control-plane.ts';
export { registerPlane } from './plane/presets/fixture.ts';
export { ManifestError } from './plane/sources.ts';
