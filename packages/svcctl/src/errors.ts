import { ApiError, ConnectionError, CredentialError, KubeconfigError } from '@wheelhouse/client';
import { errorText, type JsonObject } from '@wheelhouse/machinery';
import { CliError, type CliIo, CommandExit, PlainCliError } from './io.ts';
import { nameOf, namespaceOf } from './objects.ts';

/** A failure and the action that failed: `error when creating "f.yaml"`. */
export class ContextError extends Error {
  constructor(doing: string, cause: unknown) {
    super(doing, { cause });
    this.name = 'ContextError';
  }
}

/** The server does not serve an object's kind; `in` adds the name of the object's file. */
export class NoMatchError extends PlainCliError {
  readonly #of: { readonly object: JsonObject; readonly apiVersion: string; readonly kind: string };

  constructor(
    of: { readonly object: JsonObject; readonly apiVersion: string; readonly kind: string },
    source?: string,
  ) {
    const { object, apiVersion, kind } = of;
    const from = source === undefined ? '' : ` from ${JSON.stringify(source)}`;
    super(
      `resource mapping not found for name: ${JSON.stringify(nameOf(object))} namespace: ` +
        `${JSON.stringify(namespaceOf(object))}${from}: no matches for kind ` +
        `${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}\n` +
        'ensure CRDs are installed first',
    );
    this.#of = of;
  }

  in(source: string): NoMatchError {
    return new NoMatchError(this.#of, source);
  }
}

/** The text of a failure, in kubectl's wording, and the exit code. */
export function describeError(error: unknown): { text: string; exitCode: number } {
  const exitCode = error instanceof CliError ? error.exitCode : 1;
  return { text: `${textOf(error, '')}\n`, exitCode };
}

/**
 * Visits each item. A failure is added to `failures` and does not keep the items that follow from
 * being visited; an interrupt does. Resolves with `failures`.
 */
export async function visitEach<Item>(
  io: CliIo,
  items: Iterable<Item>,
  visit: (item: Item) => Promise<void> | void,
  failures: unknown[] = [],
): Promise<unknown[]> {
  for (const item of items) {
    try {
      await visit(item);
    } catch (error) {
      if (io.signal.aborted) throw error;
      failures.push(error);
    }
  }
  return failures;
}

/** Prints failures, if there are any. Returns the exit code. */
export function reportFailures(io: CliIo, failures: readonly unknown[]): number {
  if (failures.length === 0) return 0;
  io.err(describeErrors(failures));
  return 1;
}

/** The text of several failures: one line each, shorter than a failure that is alone. */
function describeErrors(errors: readonly unknown[]): string {
  if (errors.length === 1) return describeError(errors[0]).text;
  return errors.map((error) => `${lineOf(error, '')}\n`).join('');
}

function lineOf(error: unknown, doing: string): string {
  if (error instanceof PlainCliError) return error.message;
  if (error instanceof ContextError) return lineOf(error.cause, `${doing}${error.message}: `);
  if (error instanceof ApiError && error.code !== 401) return serverText(error, doing);
  if (error instanceof CliError) return `${doing}${error.message}`;
  return textOf(error, doing);
}

/** The cause of a failure, without the actions around it. */
export function rootOf(error: unknown): unknown {
  return error instanceof ContextError ? rootOf(error.cause) : error;
}

function textOf(error: unknown, doing: string): string {
  if (error instanceof CommandExit) return error.message;
  if (error instanceof PlainCliError) return `error: ${error.message}`;
  if (error instanceof AggregateError) {
    return error.errors.map((one) => lineOf(one, '')).join('\n');
  }
  if (error instanceof ContextError) return textOf(error.cause, `${doing}${error.message}: `);
  if (error instanceof ApiError) return apiErrorText(error, doing);
  if (error instanceof ConnectionError) return connectionText(error);
  if (error instanceof CredentialError) {
    return `Unable to connect to the server: getting credentials: ${error.message}`;
  }
  if (error instanceof KubeconfigError && error.faults.length > 0) return faultsText(error.faults);
  if (error instanceof CliError || error instanceof KubeconfigError) {
    const text = `${doing}${error.message}`;
    return text.startsWith('error: ') ? text : `error: ${text}`;
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `Unable to connect to the server: ${tooLong}`;
  }
  return `error: ${doing}${errorText(error)}`;
}

/** Go's wording for a response that does not arrive in time. */
const tooLong = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

/** A single fault as it is, several as a list. */
function faultsText(faults: readonly string[]): string {
  const [only = ''] = faults;
  if (faults.length > 1) {
    return `Error in configuration: \n${faults.map((fault) => `* ${fault}`).join('\n')}`;
  }
  return `${only.startsWith('context was') ? 'Error in configuration: ' : 'error: '}${only}`;
}

function apiErrorText(error: ApiError, doing: string): string {
  if (error.reason === 'Unauthorized' || error.code === 401) {
    return 'error: You must be logged in to the server (Unauthorized)';
  }
  if (error.reason === 'Invalid') {
    return invalidText(error);
  }
  return serverText(error, doing);
}

function serverText(error: ApiError, doing: string): string {
  const reason = error.reason === '' ? '' : ` (${error.reason})`;
  return `Error from server${reason}: ${doing}${error.message}`;
}

function invalidText(error: ApiError): string {
  const { kind = '', name = '', causes = [] } = error.details ?? {};
  const isNamed = kind !== '' || name !== '';
  const head = isNamed
    ? `The ${kind} ${JSON.stringify(name)} is invalid`
    : 'The request is invalid';
  const messages = causes.map(({ field = '', message = '' }) =>
    field === '' ? message : `${field}: ${message}`,
  );
  const lines = [...new Set(messages)];
  if (lines.length === 0)
    return isNamed || error.message === '' ? head : `${head}: ${error.message}`;
  if (lines.length === 1) return `${head}: ${lines[0]}`;
  return `${head}: \n${lines.map((line) => `* ${line}`).join('\n')}`;
}

function connectionText(error: ConnectionError): string {
  if (error.code === 'ECONNREFUSED') {
    return (
      `The connection to the server ${error.host} was refused - ` +
      'did you specify the right host or port?'
    );
  }
  return `Unable to connect to the server: ${error.message || error.code}`;
}
