import { X509Certificate } from 'node:crypto';
import { pemBlocks, pemBytes, readCertificate } from '@wheelhouse/codec';
import {
  builtinKinds,
  type CertificateOptions,
  type Crd,
  cleanupFinalizerName,
  customKindDeps,
  type IssuedCertificate,
  loadPrivilegedPods,
  type NumberClaims,
  type ObjectConverter,
  type ServiceOptions,
} from '@wheelhouse/kinds';
import { apiVersionOf, dialectOf, type MetricRegistry } from '@wheelhouse/machinery';
import { createObjectReader } from '../../admission/objects.ts';
import {
  checkExpression,
  checkRules,
  measuredRules,
  validateDefault,
} from '../../admission/rule-engine.ts';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { startCustomKinds } from '../../controllers/custom-kinds/custom-kinds.ts';
import { controllerTools } from '../../controllers/tools.ts';
import type { AggregationSlot } from '../../endpoints/call.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { ConversionMetrics } from '../../registry/conversion/metrics.ts';
import { lazyWebhooks } from '../admission/admission.ts';
import type { ServerConfig } from '../config.ts';
import type { ObjectApi, ReadingBase } from '../context.ts';
import { configuredKinds, emulatedKinds } from './settings.ts';

/** The built-in kinds as the configuration serves them. */
export async function servedKinds(
  config: ServerConfig,
  ports: { readonly services: ServiceOptions; readonly certificates: CertificateOptions },
) {
  const dialect = dialectOf(config.dialect);
  const gates = config.featureGates ?? defaultGates;
  const builtins = builtinKinds(dialect, {
    definitions: { checkRules, validateDefault, checkBundle: bundleProblems },
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

/**
 * Errors in the CA bundle of a webhook (PEM in base64); none if it is empty, or if at least one of
 * its certificates is valid.
 */
function bundleProblems(bundle: string): readonly string[] {
  const pem = Buffer.from(bundle, 'base64').toString('latin1');
  const problem = pem === '' ? undefined : bundleProblem(pem);
  return problem === undefined ? [] : [`unable to load root certificates: ${problem}`];
}

function bundleProblem(pem: string): string | undefined {
  const blocks = pemBlocks(pem)
    .map((block) => ({ ...block, body: bodyOf(block.text) }))
    .filter(({ body }) => blockBody.test(body));
  let problem: string | undefined;
  for (const { body } of blocks.filter(({ type }) => type === 'CERTIFICATE')) {
    // A block with headers is encrypted.
    if (body.includes(':')) continue;
    try {
      new X509Certificate(Buffer.from(body, 'base64'));
      return undefined;
    } catch {
      problem ??= 'failed to parse certificate: x509: malformed certificate';
    }
  }
  if (problem !== undefined) return problem;
  const last = blocks.at(-1)?.text;
  const endsWhole = last !== undefined && (pem.endsWith(last) || pem.endsWith(`${last}\n`));
  return endsWhole
    ? 'no valid certificate authority data seen'
    : 'unable to parse bytes as PEM block';
}

/**
 * Headers, if any, and base64. Each line matches in only one way, so untrusted text cannot cause
 * backtracking.
 */
const blockBody = /^(?:[^\n:]*:[^\n]*\n)*[A-Za-z0-9+/=\s]*$/;

function bodyOf(block: string): string {
  return block.slice(block.indexOf('\n') + 1, block.lastIndexOf('-----END '));
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
    const label = signerName.startsWith(`${signerDomain}/`) ? signerName : 'other';
    requested.of(label).add(1);
    if (isHonored(issued)) honored.of(label).add(1);
  };
}

/**
 * Whether the certificate is valid for the requested time, within five percent and five minutes.
 */
function isHonored({ certificate, requestedSeconds }: IssuedCertificate): boolean {
  const [first] = pemBlocks(certificate).filter(({ type }) => type === 'CERTIFICATE');
  const der = first === undefined ? undefined : pemBytes(first);
  if (der === undefined) return false;
  const requestedMs = requestedSeconds * 1000;
  try {
    const { notBeforeMs, notAfterMs } = readCertificate(der);
    const differenceMs = Math.abs(requestedMs - (notAfterMs - notBeforeMs));
    return differenceMs < slackMs + requestedMs / 20;
  } catch {
    // A certificate that cannot be parsed has no known duration.
    return false;
  }
}

/** Time limit of a conversion review in milliseconds; kube-apiserver's figure. */
const timeoutMs = 30_000;
/** Maximum response size in bytes; a review of a list has megabytes and may grow. */
const answerBytesMax = 64 * 1024 * 1024;

/**
 * Creates the converters of definitions with a webhook (CRD-4); the code is loaded with the first
 * call.
 */
function createConversions(
  parts: ReadingBase & { readonly aggregation: AggregationSlot },
): (crd: Crd) => ObjectConverter {
  const { config, dialect, catalogue, caches, tracing, aggregation } = parts;
  const { clock } = config;
  const objects = createObjectReader({ dialect, caches, clock, snapshot: catalogue.snapshot });
  const { registry } = parts.metrics;
  const webhooks = lazyWebhooks({ clock, dialect, objects, aggregation, registry, tracing });
  let metrics: Promise<ConversionMetrics> | undefined;
  const load = async (crd: Crd): Promise<Pick<ObjectConverter, 'convert'>> => {
    metrics ??= import('../../registry/conversion/metrics.ts').then((module) =>
      module.conversionMetrics(parts.metrics.registry),
    );
    const [{ webhookConverter }, { addressOf }] = await Promise.all([
      import('../../registry/conversion/webhook.ts'),
      import('../../admission/webhooks/hooks.ts'),
    ]);
    const { conversion, group, versions } = crd.spec;
    const address = addressOf(conversion?.webhook?.clientConfig);
    return webhookConverter({
      crdName: crd.metadata.name ?? '',
      reviewVersions: conversion?.webhook?.conversionReviewVersions ?? [],
      apiVersions: new Set(versions.map(({ name }) => apiVersionOf({ group, version: name }))),
      dialect,
      clock: config.clock,
      metrics: await metrics,
      post: (body) =>
        webhooks.post({ address, body, timeoutMs, answerBytesMax, signal: undefined }),
    });
  };
  return (crd) => {
    let converter: ReturnType<typeof load> | undefined;
    return {
      changes: 'members',
      nowMs: () => config.clock.monotonic(),
      clock: config.clock,
      async convert(objects, apiVersion) {
        converter ??= load(crd);
        return (await converter).convert(objects, apiVersion);
      },
    };
  };
}

/** Serves the custom kinds that definitions declare. */
export function followDefinitions(
  options: ReadingBase & {
    readonly api: ObjectApi;
    readonly aggregation: AggregationSlot;
    readonly claims: NumberClaims | undefined;
  },
): ReturnType<typeof startCustomKinds> {
  const { config, dialect, metrics, api, claims } = options;
  const { catalogue } = api;
  return startCustomKinds({
    definitions: requiredKind(
      catalogue.snapshot(),
      dialect.group('apiextensions'),
      'customresourcedefinitions',
    ),
    catalogue,
    ...controllerTools(options, { controller: 'customresourcedefinition-controller' }),
    deps: customKindDeps(dialect, {
      compileRules: measuredRules(metrics.registry, config.clock),
      converterFor: createConversions(options),
      clock: config.clock,
      features: config.featureGates ?? defaultGates,
    }),
    dialect,
    checkBundle: bundleProblems,
    cleanupFinalizer: cleanupFinalizerName(dialect),
    claims,
  });
}
