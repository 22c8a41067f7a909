export const projectRoot: string;

/** The outputs that there are. */
export const CLIENT: "src/store/generated";
export const EXPLORER: "src/graphql/explorer/generated";
export const DASHBOARD: "dashboard/dist";
export const SERVER: "dist";
export const DOCUMENTS: "test/operations/generated";
type Output = typeof CLIENT | typeof EXPLORER | typeof DASHBOARD | typeof SERVER | typeof DOCUMENTS;

export function build(options?: { readonly outputs?: readonly Output[]; readonly force?: boolean }): Promise<void>;

export function bundle(options: { readonly entries: Readonly<Record<string, string>>; readonly outdir: string }): Promise<void>;
