// Writes key|line from standard input with acks=all, and prints what a group of two reads: ADDRESS TOPIC COUNT.
const { readFileSync, writeSync } = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

const [address, topic, count] = process.argv.slice(2);

async function main() {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ allowAutoTopicCreation: true });
  await producer.connect();
  const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
  for (let from = 0; from < lines.length; from += 500) {
    const messages = lines.slice(from, from + 500).map((text) => {
      const bar = text.indexOf("|");
      return { key: text.slice(0, bar), value: text.slice(bar + 1) };
    });
    await producer.send({ topic, acks: -1, messages });
  }
  await producer.disconnect();

  const read = [];
  const members = [0, 1].map(() => kafka.consumer({ groupId: "kafkajs" }));
  const joined = members.map((member) => new Promise((resolve) => member.on(member.events.GROUP_JOIN, resolve)));
  const all = new Promise((resolve) => {
    const eachMessage = async ({ message }) => {
      read.push(message.value.toString());
      if (read.length === Number(count)) resolve();
    };
    for (const member of members) run(member, eachMessage);
  });
  // A member that is stopped while it joins takes the end of its connection for a crash and starts again.
  await Promise.all([all, ...joined]);
  await Promise.all(members.map((member) => member.disconnect()));
  writeSync(1, read.map((line) => line + "\n").join(""));
}

async function run(member, eachMessage) {
  await member.connect();
  await member.subscribe({ topic, fromBeginning: true });
  await member.run({ eachMessage });
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
