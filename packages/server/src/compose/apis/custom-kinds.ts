import {
  type Crd,
  cleanupFinalizerName,
  customKindDeps,
  type NumberClaims,
  type ObjectConverter,
} from '@wheelhouse/kinds';
import { apiVersionOf } from '@wheelhouse/machinery';
import { createObjectReader } from '../../admission/objects.ts';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { startCustomKinds } from '../../controllers/custom-kinds.ts';
import { controllerTools } from '../../controllers/tools.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { bundleProblems } from '../../gates/authn/certificate.ts';
import type { ConversionMetrics } from '../../registry/conversion/metrics.ts';
import { lazyWebhooks } from '../admission/admission.ts';
import type { ObjectApi, ReadingBase } from '../context.ts';
import { measuredRules } from './rule-engine.ts';

/** Time limit of a conversion review in milliseconds; kube-apiserver's figure. */
const timeoutMs = 30_000;
/** Maximum response size in bytes; a review of a list has megabytes and may grow. */
const answerBytesMax = 64 * 1024 * 1024;

/**
 * Creates the converters of definitions with a webhook (CRD-4); the code is loaded with the first
 * call.
 */
function createConversions(parts: ReadingBase): (crd: Crd) => ObjectConverter {
  const { config, dialect, catalogue, caches, tracing } = parts;
  const objects = createObjectReader({ dialect, caches, snapshot: catalogue.snapshot });
  const { registry } = parts.metrics;
  const webhooks = lazyWebhooks({ clock: config.clock, dialect, objects, registry, tracing });
  let metrics: Promise<ConversionMetrics> | undefined;
  const load = async (crd: Crd): Promise<Pick<ObjectConverter, 'convert'>> => {
    metrics ??= import('../../registry/conversion/metrics.ts').then((room) =>
      room.conversionMetrics(parts.metrics.registry),
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
      group: dialect.group('apiextensions'),
      clock: config.clock,
      metrics: await metrics,
      post: (body) =>
        webhooks.post({ address, body, timeoutMs, answerBytesMax, signal: undefined }),
    });
  };
  return (crd) => {
    let converter: ReturnType<typeof load> | undefined;
    return {
      nowMs: () => config.clock.monotonic(),
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
    /** Collects the names of definitions that are being deleted. */
    readonly closedKinds: Set<string>;
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
      features: config.featureGates ?? defaultGates,
    }),
    dialect,
    checkBundle: bundleProblems,
    cleanupFinalizer: cleanupFinalizerName(dialect),
    terminating: options.closedKinds,
    claims,
  });
}
