import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls';
import { bundleCertificates, pemPieces } from '@wheelhouse/codec';
import { type Clock, type MaybePromise, runInSlices, systemClock } from '@wheelhouse/machinery';

/** Certificates that one step loads, about a millisecond of work. */
const certificatesPerStep = 5;

/**
 * The CAs and the client certificate of all connections with the same options. Without it, Node
 * loads a CA bundle anew for each connection, and in one piece, which takes a second for the 5,400
 * certificates that an object may contain (TRUST-2).
 */
export class SharedTrust {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #latest: { readonly options: Trusted; readonly context: MaybePromise<SecureContext> } | undefined;

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock;
  }

  /**
   * The options with which to connect: with a secure context if they name CAs, as a promise while a
   * large bundle is loaded. Throws, or rejects, if the client certificate is invalid.
   */
  optionsFor(options: ConnectionOptions): MaybePromise<ConnectionOptions> {
    if (options.ca === undefined) return options;
    const context = this.#contextFor(options);
    if (!(context instanceof Promise)) return { ...options, secureContext: context };
    return context.then((secureContext) => ({ ...options, secureContext }));
  }

  #contextFor(options: ConnectionOptions): MaybePromise<SecureContext> {
    const latest = this.#latest;
    if (latest !== undefined && isSame(latest.options, options)) return latest.context;
    const context = runInSlices(contextSteps(options), this.#clock);
    const { ca, cert, key } = options;
    this.#latest = { options: { ca, cert, key }, context };
    if (context instanceof Promise) {
      const loaded = (secureContext: SecureContext) => {
        if (this.#latest?.context === context) {
          this.#latest = { options: { ca, cert, key }, context: secureContext };
        }
      };
      // Whoever connects receives the error.
      context.then(loaded, () => {});
    }
    return context;
  }
}

/** The options that a secure context depends on, of those that may differ between connections. */
type Trusted = Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>;

const isSame = (left: Trusted, right: Trusted) =>
  left.ca === right.ca && left.cert === right.cert && left.key === right.key;

/** A store of CAs as Node implements it; `tls` has no function that adds to one. */
interface CertificateStore {
  addCACert?(pem: string): void;
}

function* contextSteps(options: ConnectionOptions): Generator<void, SecureContext> {
  const pieces = piecesOf(options.ca);
  const first = pieces.next().value;
  // Node trusts its own CAs if the bundle is an empty text, and none if it is an empty list.
  if (typeof first !== 'string') return createSecureContext(options);
  const secure = createSecureContext({ ...options, ca: first });
  const store: CertificateStore = secure.context;
  if (store.addCACert === undefined) return createSecureContext(options);
  const decoded = [decodedPiece(first)];
  for (const piece of pieces) {
    yield;
    store.addCACert(piece);
    decoded.push(decodedPiece(piece));
  }
  if (decoded.length > 1) decodedPieces.set(secure, decoded);
  return secure;
}

/** The certificates of a piece of a bundle; undefined if one of them is malformed. */
type DecodedPiece = readonly Buffer[] | undefined;

/** The certificates of secure contexts with large bundles. */
const decodedPieces = new WeakMap<SecureContext, readonly DecodedPiece[]>();

function decodedPiece(pem: string): DecodedPiece {
  try {
    return bundleCertificates(pem);
  } catch {
    return undefined;
  }
}

/**
 * The DER of the certificates that a connection trusts. Those of a large bundle were decoded when
 * it was loaded, in steps (TRUST-2). Throws if one of the certificates is malformed.
 */
export function trustedCertificates(
  options: Pick<ConnectionOptions, 'ca' | 'secureContext'>,
): readonly Buffer[] {
  const { ca = [], secureContext } = options;
  const pieces = secureContext && decodedPieces.get(secureContext);
  if (pieces?.every((piece) => piece !== undefined)) return pieces.flat();
  const bundles = Array.isArray(ca) ? ca : [ca];
  return bundles.flatMap((bundle) => bundleCertificates(bundle.toString('latin1')));
}

/** A bundle in pieces of a few certificates. */
function* piecesOf(ca: ConnectionOptions['ca']): Generator<string, void> {
  for (const bundle of Array.isArray(ca) ? ca : [ca ?? '']) {
    yield* pemPieces(bundle.toString('latin1'), certificatesPerStep);
  }
}
