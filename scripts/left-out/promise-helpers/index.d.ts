// biome-ignore lint/performance/noReExportAll: it has the types of the package that it stands for.
export * from "promise-helpers-1";
