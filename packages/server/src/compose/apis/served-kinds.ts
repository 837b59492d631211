import {
  builtinKinds,
  type CertificateOptions,
  loadPrivilegedPods,
  type ServiceOptions,
} from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import { bundleProblems } from '../../gates/authn/certificate.ts';
import type { ServerConfig } from '../config.ts';
import { emulatedKinds } from './emulation.ts';
import { defaultGates } from './feature-gates.ts';
import { checkExpression, checkRules, judgeDefault } from './rule-engine.ts';
import { configuredKinds } from './runtime-config.ts';

/** The built-in kinds, with what the configuration serves of them. */
export async function servedKinds(
  config: ServerConfig,
  ports: { readonly services: ServiceOptions; readonly certificates: CertificateOptions },
) {
  const dialect = dialectOf(config.dialect);
  const gates = config.featureGates ?? defaultGates;
  const builtins = builtinKinds(dialect, {
    definitions: { checkRules, judgeDefault, checkBundle: bundleProblems },
    admission: { checkExpression },
    ...ports,
    features: gates,
  });
  const served = { config: config.runtimeConfig ?? new Map(), dialect };
  const ofRelease = await emulatedKinds(builtins, {
    minor: config.emulatedMinor,
    admission: { checkExpression },
    features: gates,
    ...served,
  });
  const kinds = configuredKinds(ofRelease, { ...served, gates });
  if (config.privilegedContainers !== 'refused') return kinds;
  const { withoutPrivileged } = await loadPrivilegedPods();
  return withoutPrivileged(kinds);
}
