import { pemBlocks, pemBytes, readCertificate } from '@wheelhouse/codec';
import {
  builtinKinds,
  type CertificateOptions,
  type IssuedCertificate,
  loadPrivilegedPods,
  type ServiceOptions,
} from '@wheelhouse/kinds';
import { dialectOf, type MetricRegistry } from '@wheelhouse/machinery';
import { defaultGates } from '../../flags/feature-gates.ts';
import { bundleProblems } from '../../gates/authn/certificate.ts';
import type { ServerConfig } from '../config.ts';
import { checkExpression, checkRules, judgeDefault } from './rule-engine.ts';
import { configuredKinds, emulatedKinds } from './settings.ts';

/** The built-in kinds as the configuration serves them. */
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
    removal: config.removal,
    admission: { checkExpression },
    features: gates,
    ...served,
  });
  const kinds = configuredKinds(ofRelease, { ...served, gates });
  if (config.privilegedContainers !== 'refused') return kinds;
  const { withoutPrivileged } = await loadPrivilegedPods();
  return withoutPrivileged(kinds);
}

const slackMs = 5 * 60_000;

/** Counts certificates issued for a requested duration, and those that have that duration. */
export function certificateMetrics(
  registry: MetricRegistry,
  signerDomain: string,
): (issued: IssuedCertificate) => void {
  const counter = (name: string, help: string) =>
    registry.counter({
      name: `apiserver_certificates_registry_csr_${name}`,
      help,
      stability: 'ALPHA',
      labels: ['signerName'],
    });
  const requested = counter(
    'requested_duration_total',
    'Certificates issued for requests that name a duration; signers of others are one.',
  );
  const honored = counter(
    'honored_duration_total',
    'Certificates issued for about the duration requested; signers of others are one.',
  );
  return (issued) => {
    const { signerName } = issued;
    const shown = signerName.startsWith(`${signerDomain}/`) ? signerName : 'other';
    requested.of(shown).add(1);
    if (isHonored(issued)) honored.of(shown).add(1);
  };
}

/**
 * Whether the certificate is valid for the requested time, within five percent and five minutes.
 */
function isHonored({ certificate, requestedSeconds }: IssuedCertificate): boolean {
  const [first] = pemBlocks(certificate).filter(({ type }) => type === 'CERTIFICATE');
  const der = first === undefined ? undefined : pemBytes(first);
  if (der === undefined) return false;
  const wantedMs = requestedSeconds * 1000;
  try {
    const { notBeforeMs, notAfterMs } = readCertificate(der);
    const differenceMs = Math.abs(wantedMs - (notAfterMs - notBeforeMs));
    return differenceMs < slackMs + wantedMs / 20;
  } catch {
    // A certificate that cannot be parsed has no known duration.
    return false;
  }
}
