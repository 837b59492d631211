import { ApiError } from '../client/api-client.ts';
import { CredentialError } from '../client/credential.ts';
import { ConnectionError } from '../client/http-client.ts';
import { KubeconfigError } from '../client/kubeconfig.ts';
import { CliError } from './io.ts';

/** A failure, with what was being done: `error when creating "f.yaml"`. */
export class ContextError extends Error {
  constructor(doing: string, cause: unknown) {
    super(doing, { cause });
    this.name = 'ContextError';
  }
}

/** How a failure is told to the user, in the words kubectl's users know, and the exit code. */
export function describeError(error: unknown): { text: string; exitCode: number } {
  const exitCode = error instanceof CliError ? error.exitCode : 1;
  return { text: `${textOf(error, '')}\n`, exitCode };
}

function textOf(error: unknown, doing: string): string {
  if (error instanceof ContextError) return textOf(error.cause, `${error.message}: `);
  if (error instanceof ApiError) return apiErrorText(error, doing);
  if (error instanceof ConnectionError) return connectionText(error);
  if (error instanceof CredentialError) {
    return `Unable to connect to the server: getting credentials: ${error.message}`;
  }
  if (error instanceof KubeconfigError && error.faults.length > 0) return faultsText(error.faults);
  if (error instanceof CliError || error instanceof KubeconfigError) {
    return `error: ${doing}${error.message}`;
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `error: ${doing}the request timed out`;
  }
  return `error: ${doing}${error instanceof Error ? error.message : String(error)}`;
}

/** One fault in its own words, several as a list. */
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
  if (error.reason === 'Invalid' && error.details !== undefined) {
    return invalidText(error);
  }
  const reason = error.reason === '' ? '' : ` (${error.reason})`;
  return `Error from server${reason}: ${doing}${error.message}`;
}

function invalidText(error: ApiError): string {
  const { kind = '', name = '', causes = [] } = error.details ?? {};
  const head =
    kind === '' ? 'The request is invalid' : `The ${kind} ${JSON.stringify(name)} is invalid`;
  const lines = causes.map(({ field, message = '' }) =>
    field === undefined || field === '' ? message : `${field}: ${message}`,
  );
  if (lines.length === 0) return head;
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
