import type { Family } from './cluster-ips.ts';
import type { AddressPool } from './pools.ts';

/** The object that an address belongs to. */
export interface AddressOwner {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Service addresses as API objects (MultiCIDRServiceAllocator): ServiceCIDRs say which addresses
 * there are, and an IPAddress of its own records each address in use. The IPAddress is what claims
 * an address, so that neither another server nor another program can use it at the same time.
 */
export interface AddressRecords {
  /** Resolves when the ranges and the recorded addresses are as new as the store. */
  caughtUp(): Promise<void>;
  /** The ready ranges of a family. */
  pools(family: Family): readonly AddressPool[];
  /** Whether an address has a record, by the ledger's name of the address. */
  isRecorded(key: string): boolean;
  /** Records an address; resolves to false when it has a record already. */
  record(ip: string, owner: AddressOwner): Promise<boolean>;
  /** Removes the record of an address, if `owner` is whose it is. Never rejects. */
  erase(ip: string, owner: AddressOwner): Promise<void>;
}
